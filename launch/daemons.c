// SPDX-License-Identifier: GPL-2.0
/* The job's daemons.  See daemons.h. */
#include "launch/daemons.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAEMONS_MAX	(1u << 22)

static bool make_room(struct daemons *d, uint32_t number)
{
	size_t count = 2 * (size_t)number + 16;
	struct daemon *grown;

	if (number < d->count)
		return true;
	grown = number < DAEMONS_MAX ? realloc(d->daemon, count * sizeof(*grown)) : NULL;
	if (!grown)
		return false;		/* it is not waited for */
	for (size_t i = d->count; i < count; i++)
		grown[i] = (struct daemon){ .state = DAEMON_UNKNOWN };
	d->daemon = grown;
	d->count = count;
	return true;
}

static void change(struct daemons *d, struct daemon *one, enum daemon_state state)
{
	d->owing += (state == DAEMON_JOINED) - (one->state == DAEMON_JOINED);
	one->state = state;
}

void daemons_set(struct daemons *d, uint32_t number, enum daemon_state state)
{
	if (make_room(d, number) && state > d->daemon[number].state)
		change(d, &d->daemon[number], state);
}

void daemons_join(struct daemons *d, const struct wire_header *h, const uint8_t *data)
{
	struct in_addr address;

	if (make_room(d, h->id) && h->length > sizeof(address) && !data[h->length - 1]) {
		memcpy(&address, data, sizeof(address));
		free(d->daemon[h->id].name);
		d->daemon[h->id].name = strdup((const char *)data + sizeof(address));
		d->daemon[h->id].address = address;
	}
	daemons_set(d, h->id, DAEMON_JOINED);
}

char *daemons_list(const struct daemons *d)
{
	char *out = NULL, address[INET_ADDRSTRLEN];
	size_t length = 0;
	FILE *stream = open_memstream(&out, &length);

	for (size_t i = 0; stream && i < d->count; i++) {
		const struct daemon *one = &d->daemon[i];

		if (one->name)
			fprintf(stream, "%s%s=%s", ftell(stream) ? "," : "", one->name,
				inet_ntop(AF_INET, &one->address, address, sizeof(address)));
	}
	if (stream && !fclose(stream) && length)
		return out;
	free(out);
	return NULL;
}

void daemons_ask(struct daemons *d)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->daemon[i].state == DAEMON_SYNCED)
			change(d, &d->daemon[i], DAEMON_JOINED);
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
	for (size_t i = 0; i < d->count; i++)
		free(d->daemon[i].name);
	free(d->daemon);
	memset(d, 0, sizeof(*d));
}
