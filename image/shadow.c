// SPDX-License-Identifier: GPL-2.0
/* Follows the sections of an image that passes by; see shadow.h. */
#include "image/shadow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/section.h"

struct context_shadow {
	int fd;
	uint64_t position;		/* bytes of the image so far */
	union {
		struct context_head file;
		struct section_head section;
		char bytes[64];
	} head;				/* … of which `have` bytes have come */
	size_t have;
	/* What follows the head: bytes to be kept, then to be left out, then to be kept. */
	uint64_t meta, data, tail;
	bool started;			/* the file's head was seen */
	bool loaded;			/* all was seen that context_load() reads */
	bool last;			/* the section is the trailer */
	bool complete;
};

struct context_shadow *context_shadow_new(int fd)
{
	struct context_shadow *s = calloc(1, sizeof(*s));

	if (s)
		s->fd = fd;
	return s;
}

static int keep(struct context_shadow *s, const char *data, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = pwrite(s->fd, data + done, length - done, s->position + done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? n : 0;
	}
	return 0;
}

/* A head is complete: what follows it? */
static int plan(struct context_shadow *s)
{
	const struct section_head *h = &s->head.section;

	s->have = 0;
	if (!s->started) {
		s->started = true;
		return memcmp(s->head.file.magic, CONTEXT_MAGIC, sizeof(s->head.file.magic)) ? -EINVAL : 0;
	}
	if (h->magic != CONTEXT_SECTION_MAGIC || h->meta_length > CONTEXT_MESSAGE_MAX)
		return -EINVAL;
	s->meta = h->meta_length;
	s->last = h->type == CONTEXT_TRAILER;
	if (section_has_data(h->type)) {
		s->meta += section_padding(s->position + s->meta);
		if (s->loaded || h->type == CONTEXT_MEMORY)
			s->data = h->data_length;
		else
			s->meta += h->data_length;
		s->loaded = true;
		s->tail = sizeof(struct section_tail);
	}
	s->complete = s->last && !s->meta;
	return 0;
}

/* How many of the next bytes are alike; *kept: they belong into the file. */
static size_t next_part(const struct context_shadow *s, size_t length, bool *kept)
{
	uint64_t part = s->meta;

	*kept = s->meta || !s->data;
	if (!part)
		part = s->data ? s->data : s->tail;
	if (!part)
		part = sizeof(s->head) - s->have;
	return part < length ? part : length;
}

static int advance(struct context_shadow *s, const char *data, size_t length)
{
	s->position += length;
	if (s->meta) {
		s->meta -= length;
		s->complete = s->last && !s->meta;
	} else if (s->data) {
		s->data -= length;
	} else if (s->tail) {
		s->tail -= length;
	} else {
		memcpy(s->head.bytes + s->have, data, length);
		s->have += length;
		return s->have == sizeof(s->head) ? plan(s) : 0;
	}
	return 0;
}

int context_shadow_add(struct context_shadow *s, const void *data, size_t length)
{
	const char *next = data;
	int err = 0;

	while (!err && length) {
		bool kept;
		size_t part = next_part(s, length, &kept);

		if (s->complete)
			return -EINVAL;
		err = kept ? keep(s, next, part) : 0;
		if (!err)
			err = advance(s, next, part);
		next += part;
		length -= part;
	}
	return err;
}

bool context_shadow_is_complete(const struct context_shadow *s)
{
	return s->complete;
}

void context_shadow_free(struct context_shadow *s)
{
	free(s);
}
