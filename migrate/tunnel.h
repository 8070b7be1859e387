/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The standard input, output and error of a program of one machine, passed on to another one
 * through a sealed connection (job/coordinator/wire.h), as ssh would.  Both ends run the same
 * loop; each sends what it reads from some of the three streams, and writes the others.
 */
#ifndef KCR_MIGRATE_TUNNEL_H
#define KCR_MIGRATE_TUNNEL_H

#include <stdbool.h>

#include "job/coordinator/wire.h"

#define TUNNEL_STREAMS	3		/* STDIN_FILENO and so on */

enum tunnel_type {
	TUNNEL_COMMAND = 1,		/* a command line, without NUL */
	TUNNEL_DATA = 2,		/* rank: the stream; no bytes: its end */
	TUNNEL_END = 3,			/* int32_t: status of the program, of waitpid(2) */
};

struct tunnel {
	struct wire wire;		/* to be opened and sealed by the caller */
	int fd[TUNNEL_STREAMS];		/* taken over; -1: closed */
	bool sends[TUNNEL_STREAMS];	/* read here; else written here */
	int program;			/* a pidfd of the program, if it runs here; else -1 */
	int status;			/* in the end: the program's */
	bool ended;			/* it has */

	/* Of the last message, what its stream had no room for. */
	const uint8_t *data;
	size_t left;
	int to;
};

/*
 * Until the program has ended and all of its output is passed on: 0.  A program that runs here is
 * not waited for by waitpid(2) before `end` is called, which does that and returns its status.
 * -errno without a message: the connection is lost, or -EBADMSG, -EPROTO: altered.
 */
int tunnel_run(struct tunnel *t, int (*end)(void));
/* Closes the connection and the streams. */
void tunnel_close(struct tunnel *t);

#endif /* KCR_MIGRATE_TUNNEL_H */
