/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The program that cr_batch stands for: its leader is a child of this process, whether it
 * was started or restarted.
 */
#ifndef KCR_BATCH_PROGRAM_H
#define KCR_BATCH_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes this process the parent of what cr_restart rebuilds.  0, or -errno with a message. */
int program_adopt(void);

/*
 * Starts the command with the caller's original signal mask.  The PID of the leader, or
 * -errno with a message.
 */
pid_t program_start(char *const command[]);

#define PROGRAM_RULES_MAX	16

/* How a program is to be restarted; an MPI job takes none of it but `mpi`. */
struct program_restart {
	const char *path;		/* of the checkpoint */
	bool mpi;			/* it is a snapshot of an MPI job */
	bool new_ids;			/* without the old PIDs and thread IDs */
	bool pid_namespace;		/* with all of them, in a PID namespace of its own */
	char **rules;			/* for --relocate, PROGRAM_RULES_MAX at most, or NULL */
};

/*
 * Restarts a checkpoint by cr_restart, which says on standard error why it fails.  *leader
 * is set on success, and *child to whom to wait for: the leader, or the cr_restart that stands
 * for it, as it is no child of ours in a PID namespace of its own.  0, else -errno (the low byte
 * of cr_restart's: -EBUSY, an ID is in use; -EPERM, something is not allowed, which may be to
 * choose IDs; -EINTR, a signal has ended cr_restart; -EINVAL, damaged…).
 */
int program_restart(const struct program_restart *how, pid_t *leader, pid_t *child);

/*
 * Calls fn for each process that was adopted from the program's tree, by us or by process 1 of
 * its PID namespace.
 */
void program_each_stray(pid_t leader, pid_t child, int (*fn)(void *arg, pid_t stray), void *arg);

/* Is it an mpirun that saves its job itself? */
bool program_is_mpi(pid_t leader);

/*
 * Ends the program: an mpirun by SIGTERM and, if that does not help, with its
 * descendants by SIGKILL, others by SIGKILL at once.
 */
void program_end(pid_t leader);

/*
 * Ends it by SIGKILL, so that a program which is stopped does not go on.  The daemons of an MPI
 * job do the same with its ranks as soon as their cr_mpirun is gone.
 */
void program_kill(pid_t leader);

/* Has what is stopped go on. */
void program_run_on(pid_t leader);

#endif /* KCR_BATCH_PROGRAM_H */
