/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cr_restart --pid-namespace: the program runs in a PID namespace of its own, where all its
 * IDs are free.  Four processes: cr_restart as it was started, "outside", which stands for
 * the program; process 1 of the namespace (pid_init.c), which outlives neither of the two
 * below nor, unless it is told to, the one outside; the "restorer", which goes on with the
 * restart and is the parent of the program; and the program.
 *
 * Outside and restorer have a page in common, and a socket for single letters that say
 * which of its fields are new.
 */
#ifndef KCR_UTIL_PID_NAMESPACE_H
#define KCR_UTIL_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "image/context.h"
#include "restart/restart.h"

struct pid_namespace {
	const struct context *context;
	/* restart_options.commit of the process outside, with IDs that are valid there. */
	int (*commit)(pid_t leader, pid_t foreground);
	bool detach;			/* the one outside ends when the program runs */
	bool check_only;
	struct restart_result *result;	/* set outside; the leader's PID is that outside */
};

#define PID_NAMESPACE_OUTSIDE	1

/*
 * For restart_options.join; arg: a struct pid_namespace.  0 in the restorer;
 * PID_NAMESPACE_OUTSIDE outside, when the program runs (check_only: could); or -errno with a
 * message, outside, when nothing is left of it.
 */
int pid_namespace_enter(void *arg);

/* For restart_options.commit of the restorer: asks the process outside. */
int pid_namespace_commit(pid_t leader, pid_t foreground);

/*
 * In the restorer, returns nowhere else: tells how the restart has ended, and then waits for
 * the end of the program, and until its memory is loaded.  Elsewhere it does nothing.
 */
void pid_namespace_finish(int err, const struct restart_result *result, bool check_only);

/*
 * As follow_leader(), outside.  pass_on: signals go to the leader, else nowhere.  Other
 * processes of the namespace may be left then, with a process 1 that ends with the last.
 */
int pid_namespace_follow(bool pass_on);
/*
 * Outside, then, or instead if it was told to detach: 0, or -errno with a message: memory could not
 * be loaded (--lazy), for which it waits.
 */
int pid_namespace_result(void);

#endif /* KCR_UTIL_PID_NAMESPACE_H */
