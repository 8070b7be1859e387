/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rank's part in a checkpoint of the job.  hook_cr.c (the component) calls
 * it in MPI_Init and MPI_Finalize, rank.c is the thread that talks to the
 * daemon and controls btl/cr, ask.c requests checkpoints for the application,
 * launcher.c finds the processes around the rank,
 * runtime.c goes on without its PMIx server or with another, refuse.c refuses
 * what could not be restarted.
 */
#ifndef MPI_HOOK_RANK_H
#define MPI_HOOK_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * At the end of MPI_Init: connects to the daemon and starts the thread.
 * 0; -ENOENT: there is no daemon; or -errno.
 */
int rank_begin(uint32_t rank, uint32_t size);

/*
 * After rank_begin(), if another rank has failed: no rank takes part in checkpoints.  `met`: all ranks
 * have been there.
 */
void rank_give_up(bool met);

/*
 * In MPI_Finalize, when all ranks have arrived there: waits for a checkpoint that
 * is under way; no other follows.
 */
void rank_leave(void);

/* Sends to the root.  0 or -errno; -ENOTSUP: there is none, or this rank has left. */
int rank_send(uint32_t type, const void *data, size_t length);

/* ---- ask.c ---- */

/* A checkpoint begins; `asker` as in WIRE_PREPARE. */
void ask_prepared(uint32_t rank, uint32_t asker);
/* The checkpoint that the application asked for is complete (0) or failed (errno). */
void ask_answered(int code);
/* In a restored rank, after its HELLO to the new root.  0 or -errno. */
int ask_restarted(void);

/* ---- refuse.c ---- */

/* From now on MPI refuses to start processes and to connect to other jobs. */
void refuse_begin(void);

/* ---- launcher.c ---- */

/*
 * What the daemon has passed to the process that it started for this rank: the rank
 * itself or an ancestor; in a restored rank, that is cr_restart.
 */
struct launcher {
	bool restart;		/* the rank comes from a snapshot */
	pid_t daemon;		/* 0 in a restart: found by the socket */
	pid_t top;		/* the rank, or its ancestor that was started */
	char **environment;	/* in a restart: cr_restart's; NULL-terminated */
};

/*
 * Searches the ancestors.  0 or -errno (-ESRCH: neither the process `daemon`
 * nor a restart is among them).
 */
int launcher_find(struct launcher *l, pid_t daemon);
void launcher_free(struct launcher *l);
/* Value of a variable in its environment, or NULL. */
const char *launcher_get(const struct launcher *l, const char *name);

/* ---- runtime.c ---- */

/* From now on the loss of the server does not end the rank.  0 or -errno. */
int runtime_watch(void);
/*
 * In a restored rank: if there is a server in the new environment, leaves the lost one,
 * takes the PMIX_* and OMPI_* variables over and joins the new one; else goes on without.
 * 0 or -errno.
 */
int runtime_reattach(const struct launcher *l);

#endif /* MPI_HOOK_RANK_H */
