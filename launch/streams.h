/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Standard input, output and error of a rank.  Files and devices of the proxy are given to the
 * rank as they are.  In the place of pipes, sockets and terminals, which end with the
 * launcher, it gets pipes and terminals whose other ends the daemon keeps open: the rank
 * sees neither an end of its input nor a SIGPIPE when proxy or launcher die.
 */
#ifndef LAUNCH_STREAMS_H
#define LAUNCH_STREAMS_H

#define STREAMS	3

struct streams {
	int rank[STREAMS];	/* for the rank */
	int other[STREAMS];	/* the daemon's end; -1: there is none */
};

/* From the proxy's three.  0 or -errno, and then nothing is open. */
int streams_open(struct streams *s, const int given[STREAMS]);
void streams_close(int fds[STREAMS]);

/*
 * First of all in a program: what it opens later does not become one of its own three, if it was
 * started without.
 */
void streams_hold_own(void);

#endif /* LAUNCH_STREAMS_H */
