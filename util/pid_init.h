/* SPDX-License-Identifier: GPL-2.0 */
/* Process 1 of the PID namespace that cr_restart --pid-namespace makes. */
#ifndef KCR_UTIL_PID_INIT_H
#define KCR_UTIL_PID_INIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "image/context.h"
#include "restart/restart.h"

/* Letters on the socket, each followed by nothing. */
#define PID_SAYS_COMMIT		'c'	/* leader, foreground; answered by the next two */
#define PID_SAYS_YES		'y'
#define PID_SAYS_NO		'n'
#define PID_SAYS_RUNNING	'r'	/* result */
#define PID_SAYS_STOPPED	's'	/* stop_signal */
#define PID_SAYS_LOADED		'l'	/* err, message: all memory is there (--lazy), or never will be */
#define PID_SAYS_ENDED		'e'	/* status; others of the namespace are left */

/* In memory that all of them share; written by the restorer, except where it says so. */
struct pid_shared {
	pid_t restorer;
	pid_t leader, foreground;	/* in the namespace */
	bool committed;			/* the program may run from here on */
	bool detached;			/* by the one outside: it may end before the program */
	bool restored;			/* `err` and `result` are set */
	bool ended;			/* `status` is set; also by process 1: the restorer's own */
	int status;			/* of waitpid(2), or -errno: it is another's child */
	int stop_signal;
	bool loaded;			/* `err` says how that went; waited for only if detached */
	int err;
	char message[2048];
	struct restart_result result;
};

/*
 * The life of process 1, just forked with CLONE_NEWPID and CLONE_NEWNS: mounts /proc,
 * makes the restorer, and waits for the end of all.  Returns in the restorer only, which
 * has the caller's signal mask.  `outside`: the socket.
 */
void pid_init_run(struct pid_shared *s, int outside, const struct context *c);

#endif /* KCR_UTIL_PID_INIT_H */
