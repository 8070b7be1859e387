// SPDX-License-Identifier: GPL-2.0
/* Input for the ranks.  See feed.h. */
#include "launch/feed.h"

#include <errno.h>
#include <unistd.h>

#include "launch/rank_message.h"

void feed_init(struct feed *f)
{
	f->ended = false;
	f->terminal = isatty(STDIN_FILENO);
}

bool feed_is_open(const struct feed *f)
{
	return !f->ended && (!f->terminal || tcgetpgrp(STDIN_FILENO) == getpgrp());
}

size_t feed_read(struct feed *f, struct wire *w)
{
	uint8_t data[RANK_BYTES_MAX];
	ssize_t got = read(STDIN_FILENO, data, sizeof(data));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;		/* somebody else has read it */
	f->ended = got <= 0;
	rank_message_queue(w, RANK_INPUT, WIRE_ALL, WIRE_ALL, 0, data, got > 0 ? got : 0);
	return got > 0 ? got : 0;
}
