/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One rank as its keeper (keeper.h) has it: the process, the proxy that the launcher takes for
 * it, the other ends of its standard input, output and error.
 */
#ifndef LAUNCH_KEPT_H
#define LAUNCH_KEPT_H

#include <poll.h>
#include <stdbool.h>

#include "launch/process.h"
#include "launch/rank_message.h"

#define KEPT_FDS	5
#define LAUNCHER_ENDED	(-2)

/* What the ranks of a node have in common. */
struct home {
	const char *daemon;		/* for process_start() */
	struct wire wire;		/* to cr_mpirun; fd -1: there is none */
	bool by_launcher;		/* proxies carry the output */
	bool alone;			/* proxies do not count any more */
	bool ends;			/* all that ranks have started is killed, and none starts any more */
	size_t room;			/* what is left of RANK_WINDOW */
	int launcher;			/* pidfd of what has started the proxies; -1, LAUNCHER_ENDED */
};

/* The beginning of a line, which is sent with the rest of it. */
struct kept_stream {
	uint8_t rest[RANK_BYTES_MAX];
	size_t length;
};

struct kept {
	int proxy;			/* -1: it has gone */
	struct process process;
	bool begun, ended, told;	/* was started; has ended; all were told so, perhaps before its output's end */
	int status;			/* then: as from waitpid(2) */
	uint8_t lacks_memory;		/* then: not all of it was loaded (cr_restart --lazy) */
	bool takes_input, input_ends;	/* input_ends: there will be no more */
	uint8_t *input;			/* not yet taken by the rank */
	size_t input_begin, input_end;
	uint32_t owed;			/* bytes for which cr_mpirun waits for RANK_TAKEN */
	struct kept_stream stream[2];	/* of output and errors */
};

/* Of the rank whose proxy is at the other end of `proxy`; NULL: no memory. */
struct kept *kept_new(int proxy);
void kept_free(struct kept *k);

/* Fills in KEPT_FDS entries. */
void kept_watch(const struct home *home, const struct kept *k, struct pollfd *p);
/* Does what they report.  True: all is done, and kept_free() is due. */
bool kept_serve(struct home *home, struct kept *k, const struct pollfd *p);
/* Handles a message of cr_mpirun to this rank. */
void kept_order(struct home *home, struct kept *k, const struct rank_message *m,
		const uint8_t *data, size_t length);
/* Has it ended, and left output for which there was no room yet? */
bool kept_has_output(const struct kept *k);

#endif /* LAUNCH_KEPT_H */
