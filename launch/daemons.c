// SPDX-License-Identifier: GPL-2.0
/* The job's daemons.  See daemons.h. */
#include "launch/daemons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAEMONS_MAX	(1u << 22)

static bool make_room(struct daemons *d, uint32_t number)
{
	size_t count = 2 * (size_t)number + 16;
	uint8_t *grown;

	if (number < d->count)
		return true;
	grown = number < DAEMONS_MAX ? realloc(d->state, count) : NULL;
	if (!grown)
		return false;		/* it is not waited for */
	memset(grown + d->count, DAEMON_UNKNOWN, count - d->count);
	d->state = grown;
	d->count = count;
	return true;
}

void daemons_set(struct daemons *d, uint32_t number, enum daemon_state state)
{
	if (!make_room(d, number) || state <= d->state[number])
		return;
	d->owing += (state == DAEMON_JOINED) - (d->state[number] == DAEMON_JOINED);
	d->state[number] = state;
}

/* Else it has said that a connection ended. */
static bool is_silence(int code)
{
	return code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH ||
	       code == EHOSTDOWN || code == ENETDOWN;
}

static bool is_end(int code)
{
	return code == ECONNRESET || code == EPIPE;
}

bool daemons_read_loss(struct daemon_loss *loss, const struct wire_header *h, const uint8_t *data)
{
	struct wire_failed why;

	if (h->length <= sizeof(why) || data[h->length - 1])
		return false;
	memcpy(&why, data, sizeof(why));
	loss->name = (const char *)data + sizeof(why);
	loss->silent = is_silence(why.code);
	if (loss->silent)
		snprintf(loss->text, sizeof(loss->text), "node %s is lost: %s", loss->name,
			 strerror(why.code));
	else if (is_end(why.code))
		snprintf(loss->text, sizeof(loss->text), "the daemon of node %s has ended", loss->name);
	else
		snprintf(loss->text, sizeof(loss->text), "the connection to node %s is broken: %s",
			 loss->name, strerror(why.code));
	return true;
}

void daemons_free(struct daemons *d)
{
	free(d->state);
	memset(d, 0, sizeof(*d));
}
