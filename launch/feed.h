/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cr_mpirun's standard input on its way to the ranks that take input.  The next part is read
 * when one of them has taken all so far, and no other has fallen too far behind (RANK_BEHIND); the
 * first when all ranks have been started.
 */
#ifndef LAUNCH_FEED_H
#define LAUNCH_FEED_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "job/coordinator/wire.h"

struct feed {
	bool ended;		/* and the ranks were told so */
	bool terminal;		/* is read only in the foreground */
};

void feed_init(struct feed *f);
/* May input be read now?  A terminal: ask again after FEED_PAUSE_MS. */
bool feed_is_open(const struct feed *f);
#define FEED_PAUSE_MS	500
/* There may be some: reads it and queues it for all ranks.  So many bytes; 0: the end, or none. */
size_t feed_read(struct feed *f, struct wire *w);

#endif /* LAUNCH_FEED_H */
