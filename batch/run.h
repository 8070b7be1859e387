/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One run of a job: from the start or restart of the program to its end, or to the save
 * after which the next run goes on.  begin.c starts it, supervise.c is its loop, save.c
 * makes one checkpoint.  All in one thread.
 */
#ifndef KCR_BATCH_RUN_H
#define KCR_BATCH_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "batch/folder.h"
#include "batch/hold.h"
#include "batch/log.h"
#include "batch/options.h"
#include "batch/schedule.h"
#include "batch/state.h"

struct run {
	const struct options *options;
	const char *script;		/* the job script of which the command is a copy, or NULL */
	struct folder folder;
	struct state state;
	struct schedule schedule;
	struct hold hold;
	uint64_t start_ns;		/* of cr_batch */
	uint64_t ask_ns;		/* when to ask for the allocation's end again; SCHEDULE_NEVER */
	unsigned int silent;		/* how often there was no answer */
	pid_t leader;			/* of the program */
	pid_t child;			/* that ends as it ends: the leader, or who stands for it */
	int warning;			/* the signal that the run leaves on; 0: none */
	siginfo_t ending;		/* the program's end was asked for by this; si_signo 0: no */
	int told;			/* the signal by which the program may have been told to end; 0 */
	struct log_repeated failure;	/* of a save */
};

/* Does all of it; the exit code, if the process has not ended as the program did. */
int run_supervise(const struct options *o);

/*
 * Takes the job's lock, if need be after a while.  0, -EINTR: a warning has come before that; or
 * other -errno with a message: -EBUSY, another cr_batch has it.
 */
int run_lock(struct run *r);

/* Has this very command ended with 0 in a run before, and is that enough (--once)? */
bool run_is_done(const struct run *r);

/*
 * Starts the command, or restarts it from the newest checkpoint that is undamaged.  0, or
 * the exit code, after a line in the log; -EINTR: a warning has come before the program ran,
 * and the next run is to go on with the checkpoints.
 */
int run_begin(struct run *r);

/*
 * Takes a checkpoint of the program whose leader is `leader`; `leave`: which ends with it.
 * The new one counts, and old ones are removed, once it is complete (and verified).  0, or
 * -errno with a message: then the program runs on, and the older checkpoints are there.
 */
int run_save(struct run *r, pid_t leader, bool leave);

/*
 * Gives a damaged checkpoint a name that does not count, and removes those that were set aside
 * before, as many would fill the disk: the newest may tell why it is damaged.
 */
void run_set_aside(const struct run *r, const struct folder_checkpoint *c);

/* Does a signal ask for the program's end, other than one that only warns of it? */
bool run_is_to_end(int signal);
/* Either: what a run is waiting for before the program runs is left to the next run. */
bool run_ends_waiting(const struct run *r, int signal);

/* Writes the state; a failure is said once and stops nothing. */
void run_note(struct run *r);

/*
 * Is a checkpoint complete and undamaged?  All of it is read.  0, -EINVAL (it is damaged) or
 * other -errno (that could not be found out; -EINTR: because of a signal); a line on what is
 * wrong goes to `why`.
 */
int run_verify(const char *path, char *why, size_t size);

#endif /* KCR_BATCH_RUN_H */
