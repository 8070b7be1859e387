/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Takes an image from a pipe, while it is being made, to the target, and keeps its shadow
 * (image/shadow.h) as the parent of the next one: a thread of the source.
 */
#ifndef KCR_MIGRATE_FEED_H
#define KCR_MIGRATE_FEED_H

#include <pthread.h>
#include <stdbool.h>

#include "restart/link.h"

struct feed {
	pthread_t thread;
	const struct link *link;
	struct context_shadow *shadow;
	int pipe[2];			/* its ends: we read from the first one */
	int file;			/* of the shadow */
	bool running;
	bool unkept;			/* the error is one of the shadow's file, not of the link */
	int err;
};

/*
 * Begins with a new image, which is to be written to feed->pipe[1]; `file`, the shadow's, is
 * closed in the end.  0 or -errno with a message.
 */
int feed_start(struct feed *f, const struct link *w, int file);
/*
 * Waits until all of it is on its way; if the image ends too early, the pipe's other end
 * must be closed.  0 or -errno without a message.  Nothing if it is not running.
 */
int feed_finish(struct feed *f);

#endif /* KCR_MIGRATE_FEED_H */
