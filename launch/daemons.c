// SPDX-License-Identifier: GPL-2.0
/* The job's daemons.  See daemons.h. */
#include "launch/daemons.h"

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

void daemons_free(struct daemons *d)
{
	free(d->state);
	memset(d, 0, sizeof(*d));
}
