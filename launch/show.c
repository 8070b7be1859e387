// SPDX-License-Identifier: GPL-2.0
/* Output of the ranks.  See show.h. */
#include "launch/show.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/format.h"

#define OWN	UINT32_MAX	/* in the place of a node's number */

struct shown {
	struct shown *next;
	uint32_t node;
	size_t length, written;
	uint8_t data[];
};

static int stream_of(int fd)
{
	return fd == STDERR_FILENO;
}

static int fd_of(int stream)
{
	return stream ? STDERR_FILENO : STDOUT_FILENO;
}

void show_init(struct show *s, void (*done)(void *, uint32_t, size_t), void *argument)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SHOW_FDS; i++)
		s->stream[i].last = &s->stream[i].first;
	s->done = done;
	s->argument = argument;
}

static void done(struct show *s, uint32_t node, size_t length)
{
	if (node != OWN)
		s->done(s->argument, node, length);
}

void show_add(struct show *s, int fd, uint32_t node, const uint8_t *data, size_t length)
{
	int i = stream_of(fd);
	struct shown *new = s->stream[i].lost ? NULL : malloc(sizeof(*new) + length);

	if (!new) {
		done(s, node, length);
		return;
	}
	*new = (struct shown){ .node = node, .length = length };
	memcpy(new->data, data, length);
	if (fd == STDERR_FILENO && length > 0)
		s->in_line = data[length - 1] != '\n';
	*s->stream[i].last = new;
	s->stream[i].last = &new->next;
}

bool show_is_empty(const struct show *s)
{
	return !s->stream[0].first && !s->stream[1].first;
}

void show_watch(const struct show *s, struct pollfd *p)
{
	for (int i = 0; i < SHOW_FDS; i++)
		p[i] = (struct pollfd){ s->stream[i].first ? fd_of(i) : -1, POLLOUT, 0 };
}

static void take_first(struct show *s, int i)
{
	struct shown *first = s->stream[i].first;

	s->stream[i].first = first->next;
	if (!first->next)
		s->stream[i].last = &s->stream[i].first;
	done(s, first->node, first->length);
	free(first);
}

/* A pipe that poll(2) calls writable has room for PIPE_BUF bytes: the write does not wait. */
static bool is_writable(int fd)
{
	struct pollfd p = { fd, POLLOUT, 0 };

	return poll(&p, 1, 0) == 1;
}

static void lose(struct show *s, int i)
{
	s->stream[i].lost = true;
	if (errno != EPIPE && !i)
		show_say(s, "standard output of the job is lost from here on: %s", strerror(errno));
}

static void take_lost(struct show *s, int i)
{
	while (s->stream[i].lost && s->stream[i].first)
		take_first(s, i);
}

static void write_some(struct show *s, int i)
{
	struct shown *first = s->stream[i].first;
	size_t left = first->length - first->written;
	ssize_t n = write(fd_of(i), first->data + first->written,
			  left < PIPE_BUF ? left : PIPE_BUF);

	if (n > 0)
		first->written += n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		lose(s, i);
	if (first->written == first->length)
		take_first(s, i);
	take_lost(s, i);
}

void show_drop(struct show *s)
{
	for (int i = 0; i < SHOW_FDS; i++) {
		s->stream[i].lost |= s->stream[i].first && !is_writable(fd_of(i));
		take_lost(s, i);
	}
}

/* While there is room. */
static void write_all(struct show *s, int i)
{
	while (s->stream[i].first && is_writable(fd_of(i)))
		write_some(s, i);
}

void show_serve(struct show *s, const struct pollfd *p)
{
	for (int i = 0; i < SHOW_FDS; i++)
		if (p[i].revents)
			write_all(s, i);
}

void show_say(struct show *s, const char *format, ...)
{
	char *text, *line = NULL;
	va_list arguments;
	int length = -1;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	if (text)
		length = asprintf(&line, "%sKCR: %s\n", s && s->in_line ? "\n" : "", text);
	free(text);
	if (length < 0)
		return;
	if (s) {
		show_add(s, STDERR_FILENO, OWN, (const uint8_t *)line, length);
		write_all(s, stream_of(STDERR_FILENO));
	} else {
		fputs(line, stderr);
	}
	free(line);
}
