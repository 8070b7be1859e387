/* SPDX-License-Identifier: GPL-2.0 */
/* The launcher (mpirun, srun) as a child of cr_mpirun. */
#ifndef LAUNCH_LAUNCHER_H
#define LAUNCH_LAUNCHER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct launcher {
	const char *name;
	pid_t pid;
	bool stopped, ended;
	int status;		/* then: as from waitpid(2) */
	bool by_slurm;		/* srun: that need not be the status of the rank that failed first */
};

/*
 * Blocks all signals of this thread, and of those created later, which the loop in watch.h
 * takes; not `number_of_own` (0: none), which this process handles itself, nor those that are ignored.
 * To be called before other threads exist.
 */
void launcher_hold_signals(int number_of_own);
/* As they were before: for another program in the place of this one. */
void launcher_release_signals(void);

/*
 * Likewise for this program, once more, in its place: those that would kill it wait until then, but
 * for the ones that are to end the job.  `mask` is the value that LAUNCHER_MASK_VARIABLE has to have
 * in its environment; it tells launcher_hold_signals() what was before.
 */
#define LAUNCHER_MASK_VARIABLE	"KCR_MPI_MASK"
#define LAUNCHER_MASK		17	/* hexadecimal digits and a NUL */
void launcher_keep_signals(char mask[LAUNCHER_MASK]);
/* A descriptor for these signals (signalfd(2)), or -errno. */
int launcher_signals(void);

/*
 * Starts it, found in PATH, with signals as they were before launcher_hold_signals();
 * `has_input` false: it gets none.  0 or -errno with a message.
 */
int launcher_start(struct launcher *l, char *const *argv, bool has_input);
/*
 * Likewise one that starts the daemons: without input, without the terminal's signals, and
 * without what the environment asks of srun for the ranks.
 */
int launcher_start_aside(struct launcher *l, char *const *argv);

/* After SIGCHLD: has it ended?  If not, `stopped` may have been set. */
bool launcher_check(struct launcher *l);
/* If it has stopped. */
void launcher_continue(struct launcher *l);

#endif /* LAUNCH_LAUNCHER_H */
