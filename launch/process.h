/* SPDX-License-Identifier: GPL-2.0 */
/* A rank as the daemon's child, or what was started to become one. */
#ifndef LAUNCH_PROCESS_H
#define LAUNCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "launch/streams.h"

struct process {
	pid_t pid;		/* 0: not started yet, or it has ended and was waited for */
	int pidfd;		/* readable when it ends; -1 */
	int other[STREAMS];	/* the other ends of its standard input, output and error */
	uint32_t rank, size;	/* in the job, which has `size`; WIRE_ALL, 0: not known */
};

void process_init(struct process *p);

/*
 * Starts what the proxy has described in the file `description` (start.h), with the proxy's
 * standard input, output and error.  `daemon` becomes its WIRE_DAEMON_VARIABLE, NULL: it
 * gets none.  0, or -errno if it could not be forked; what fails later ends it with 126
 * or 127, as in a shell.
 */
int process_start(struct process *p, int description, const int given[STREAMS],
		  const char *daemon);

/*
 * To its process group if it still has its own, else to it alone.  SIGKILL, SIGSTOP and
 * SIGCONT also to all its descendants: those of a restored rank have groups of their own.
 */
void process_signal(const struct process *p, int number);

/* It has ended: as from waitpid(2).  Its output may still have to be read. */
int process_take(struct process *p);

#endif /* LAUNCH_PROCESS_H */
