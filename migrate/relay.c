// SPDX-License-Identifier: GPL-2.0
/* See relay.h. */
#include "migrate/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define AT_ONCE	65536

struct flow {
	struct relay_way *way;
	char *buffer;
	size_t begin, end;		/* what has been read and not written */
	size_t most;			/* to be written at once without waiting */
};

static bool is_empty(const struct flow *f)
{
	return f->begin == f->end;
}

/* Others may have the descriptor, so its flags are left alone: so much of a pipe is free if any. */
static size_t most_for(int fd)
{
	return fcntl(fd, F_GETFL) & O_NONBLOCK ? AT_ONCE : PIPE_BUF;
}

static bool is_over(ssize_t n)
{
	return !n || (n < 0 && errno != EINTR && errno != EAGAIN);
}

/* Has its way ended? */
static bool read_some(struct flow *f)
{
	ssize_t n = read(f->way->from, f->buffer, AT_ONCE);

	f->begin = 0;
	f->end = n > 0 ? (size_t)n : 0;
	return is_over(n);
}

static bool write_some(struct flow *f)
{
	size_t left = f->end - f->begin;
	ssize_t n = write(f->way->to, f->buffer + f->begin, left < f->most ? left : f->most);

	f->begin += n > 0 ? (size_t)n : 0;
	return is_over(n);
}

static void ask(const struct flow *f, struct pollfd p[2])
{
	p[0] = (struct pollfd){ .fd = is_empty(f) ? f->way->from : -1, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = is_empty(f) ? -1 : f->way->to, .events = POLLOUT };
}

/* Has all ended? */
static bool move(struct flow *f, const struct pollfd p[2])
{
	bool over = (p[0].revents && read_some(f)) || (p[1].revents && write_some(f));

	if (!over || f->way->ends)
		return over;
	close(f->way->to);
	f->way->from = f->way->to = -1;
	f->begin = f->end = 0;
	return false;
}

int relay_both(struct relay_way *there, struct relay_way *back)
{
	struct flow flow[] = { { .way = there }, { .way = back } };
	struct pollfd p[4];
	bool over = false;

	for (int i = 0; i < 2; i++) {
		flow[i].buffer = malloc(AT_ONCE);
		flow[i].most = most_for(flow[i].way->to);
	}
	while (flow[0].buffer && flow[1].buffer && !over) {
		ask(&flow[0], p);
		ask(&flow[1], p + 2);
		if (poll(p, 4, -1) > 0)
			over = move(&flow[0], p) || move(&flow[1], p + 2);
	}
	free(flow[0].buffer);
	free(flow[1].buffer);
	return over ? 0 : -ENOMEM;
}
