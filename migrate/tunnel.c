// SPDX-License-Identifier: GPL-2.0
/*
 * See tunnel.h.  Nothing is buffered beyond one message from there and a megabyte for there: who
 * writes more than the reader takes waits, as at a pipe.
 */
#include "migrate/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PENDING_MOST	(1u << 20)	/* bytes that wait to be sent, until no more are read */
#define READ_AT_ONCE	65536
#define DRAIN_MS	10000

enum { CONNECTION = TUNNEL_STREAMS, PROGRAM, POLLED };

static void close_stream(struct tunnel *t, int stream)
{
	if (t->fd[stream] >= 0)
		close(t->fd[stream]);
	t->fd[stream] = -1;
}

/* ---- from here ------------------------------------------------------------------------------ */

static void send_some(struct tunnel *t, int stream)
{
	char buffer[READ_AT_ONCE];
	ssize_t n = read(t->fd[stream], buffer, sizeof(buffer));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	wire_queue(&t->wire, TUNNEL_DATA, (uint32_t)stream, 0, buffer, n > 0 ? (size_t)n : 0);
	if (n <= 0)
		close_stream(t, stream);
}

/* ---- from there ----------------------------------------------------------------------------- */

/*
 * Whoever reads the stream may have closed it; the rest is of no use then.  The standard error is
 * that of others, too, and left as it is: so much of a pipe is free if any.
 */
static void write_some(struct tunnel *t)
{
	size_t most = t->to == STDERR_FILENO && t->left > PIPE_BUF ? PIPE_BUF : t->left;
	ssize_t n = t->fd[t->to] < 0 ? (ssize_t)t->left : write(t->fd[t->to], t->data, most);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0)
		close_stream(t, t->to);
	t->data += n < 0 ? t->left : (size_t)n;
	t->left -= n < 0 ? t->left : (size_t)n;
}

/* 1: it was the last message, 0, or -EPROTO. */
static int take(struct tunnel *t, const struct wire_header *h, const uint8_t *data)
{
	int32_t status;

	if (h->type == TUNNEL_END && h->length == sizeof(status) && t->program < 0) {
		memcpy(&status, data, sizeof(status));
		t->status = status;
		return 1;
	}
	if (h->type != TUNNEL_DATA || h->rank >= TUNNEL_STREAMS || t->sends[h->rank])
		return -EPROTO;
	t->to = (int)h->rank;
	t->data = data;
	t->left = h->length;
	if (h->length)
		write_some(t);
	else
		close_stream(t, t->to);
	return 0;
}

/* All messages that are there, as far as there is room for their contents: as take(). */
static int take_all(struct tunnel *t)
{
	struct wire_header header;
	const uint8_t *data;
	int result = 0;

	while (!result && !t->left) {
		int got = wire_next(&t->wire, &header, &data);

		if (got <= 0)
			return got;
		result = take(t, &header, data);
	}
	return result;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static size_t pending(const struct tunnel *t)
{
	return t->wire.out_end - t->wire.out_begin;
}

static bool is_full(const struct tunnel *t)
{
	return pending(t) >= PENDING_MOST;
}

/*
 * While the reader of what has come is waited for, nothing is read from the connection, whose end
 * would be told at once, and for ever.
 */
static void ask(const struct tunnel *t, struct pollfd *p)
{
	short wanted = (short)(wire_events(&t->wire) & (t->left ? POLLOUT : POLLIN | POLLOUT));

	for (int i = 0; i < TUNNEL_STREAMS; i++) {
		short events = t->sends[i] ? (is_full(t) ? 0 : POLLIN) :
			       t->left && t->to == i ? POLLOUT : 0;

		p[i] = (struct pollfd){ .fd = events ? t->fd[i] : -1, .events = events };
	}
	p[CONNECTION] = (struct pollfd){ .fd = wanted ? t->wire.fd : -1, .events = wanted };
	p[PROGRAM] = (struct pollfd){ .fd = t->ended ? -1 : t->program, .events = POLLIN };
}

/* Takes what still comes: if it were left, the kernel would not send what we have said last. */
static void drain(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buffer[READ_AT_ONCE];

	shutdown(fd, SHUT_WR);
	while (poll(&p, 1, DRAIN_MS) > 0 && recv(fd, buffer, sizeof(buffer), 0) > 0)
		;
}

/* The program has ended, and nothing it has written is left: says so, and waits until all is sent. */
static int say_end(struct tunnel *t, int (*end)(void))
{
	int32_t status = end();
	int err;

	t->status = status;
	wire_queue(&t->wire, TUNNEL_END, 0, 0, &status, sizeof(status));
	while (!(err = wire_flush(&t->wire)) && wire_pending(&t->wire)) {
		struct pollfd p = { .fd = t->wire.fd, .events = POLLOUT };

		poll(&p, 1, -1);
	}
	if (!err)
		drain(t->wire.fd);
	return err;
}

static bool reads_some(struct tunnel *t, const struct pollfd *p)
{
	bool some = false;

	for (int i = 0; i < TUNNEL_STREAMS; i++) {
		if (t->sends[i] && p[i].revents) {
			send_some(t, i);
			some = true;
		}
	}
	return some;
}

/* As far as possible without waiting. */
static int relay(struct tunnel *t, const struct pollfd *p)
{
	int result = 0;

	if (t->left && p[t->to].revents)
		write_some(t);
	if (p[CONNECTION].revents & ~POLLOUT && !t->left)
		result = wire_fill_once(&t->wire);
	if (result >= 0)		/* 1: there may be more, for the next time */
		result = take_all(t);
	return result ?: wire_flush(&t->wire);
}

int tunnel_run(struct tunnel *t, int (*end)(void))
{
	struct pollfd p[POLLED];
	int result;

	for (int i = 0; i < TUNNEL_STREAMS; i++)
		if (t->fd[i] >= 0 && !t->sends[i] && i != STDERR_FILENO)
			fcntl(t->fd[i], F_SETFL, fcntl(t->fd[i], F_GETFL) | O_NONBLOCK);
	result = take_all(t);		/* which came along with what was before */
	while (!result) {
		/* All that it has written before its end is there to be read then. */
		bool last = t->ended && !is_full(t), some;

		ask(t, p);
		if (poll(p, POLLED, last ? 0 : -1) < 0)
			continue;
		some = reads_some(t, p);
		result = relay(t, p);
		if (last && !some && !result)
			return say_end(t, end);
		t->ended |= p[PROGRAM].revents != 0;
	}
	return result < 0 ? result : 0;
}

void tunnel_close(struct tunnel *t)
{
	wire_close(&t->wire);
	for (int i = 0; i < TUNNEL_STREAMS; i++)
		close_stream(t, i);
}
