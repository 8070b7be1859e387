// SPDX-License-Identifier: GPL-2.0
/* Framing of messages over a stream socket.  See wire.h. */
#include "mpi-plugin/coordinator/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_AT_ONCE	65536
#define ROOM_KEPT	(1u << 20)	/* larger buffers are freed when they are empty */

/* A silent peer is asked after IDLE, every INTERVAL, COUNT times. */
#define PEER_IDLE_S	30
#define PEER_INTERVAL_S	10
#define PEER_COUNT	3

/* ---- polled ------------------------------------------------------------------- */

void wire_open(struct wire *w, int fd)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
}

void wire_watch_peer(int fd)
{
	int one = 1, idle = PEER_IDLE_S, interval = PEER_INTERVAL_S, count = PEER_COUNT;
	unsigned int unanswered_ms = (PEER_IDLE_S + PEER_COUNT * PEER_INTERVAL_S) * 1000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

void wire_close(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->in);
	free(w->out);
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

short wire_events(const struct wire *w)
{
	return POLLIN | (w->blocked ? POLLOUT : 0);
}

/* Room for `more` bytes behind those between *begin and *end, which may move. */
static uint8_t *room_for(uint8_t **buffer, size_t *room, size_t *begin, size_t *end, size_t more)
{
	size_t used = *end - *begin;
	uint8_t *grown;

	if (*room - *end >= more)
		return *buffer + *end;
	if (*begin) {
		memmove(*buffer, *buffer + *begin, used);
		*begin = 0;
		*end = used;
	}
	if (*room - used < more) {
		size_t wanted = used + more;

		wanted += wanted < ROOM_KEPT ? wanted : ROOM_KEPT;
		grown = realloc(*buffer, wanted);
		if (!grown)
			return NULL;
		*buffer = grown;
		*room = wanted;
	}
	return *buffer + used;
}

static void emptied(uint8_t **buffer, size_t *room, size_t *begin, size_t *end)
{
	*begin = *end = 0;
	if (*room <= ROOM_KEPT)
		return;
	free(*buffer);
	*buffer = NULL;
	*room = 0;
}

void wire_queue(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
		const void *data, size_t length)
{
	struct wire_header header = { length, type, rank, id };
	uint8_t *at;

	if (w->fd < 0)
		return;
	at = room_for(&w->out, &w->out_room, &w->out_begin, &w->out_end, sizeof(header) + length);
	if (!at) {			/* its peer sees the end and gives up */
		shutdown(w->fd, SHUT_RDWR);
		return;
	}
	memcpy(at, &header, sizeof(header));
	if (length)
		memcpy(at + sizeof(header), data, length);
	w->out_end += sizeof(header) + length;
}

void wire_send(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
	       const void *data, size_t length)
{
	wire_queue(w, type, rank, id, data, length);
	wire_flush(w);
}

int wire_flush(struct wire *w)
{
	w->blocked = false;
	while (wire_pending(w)) {
		ssize_t n = send(w->fd, w->out + w->out_begin, w->out_end - w->out_begin,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			w->blocked = errno == EAGAIN;
			return w->blocked ? 0 : -errno;
		}
		w->out_begin += n;
	}
	emptied(&w->out, &w->out_room, &w->out_begin, &w->out_end);
	return 0;
}

int wire_fill(struct wire *w)
{
	for (;;) {
		uint8_t *at = room_for(&w->in, &w->in_room, &w->in_begin, &w->in_end, READ_AT_ONCE);
		ssize_t n;

		if (!at)
			return -ENOMEM;
		n = recv(w->fd, at, READ_AT_ONCE, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		w->in_end += n;
		if (n < READ_AT_ONCE)
			return 0;
	}
}

int wire_next(struct wire *w, struct wire_header *header, const uint8_t **data)
{
	size_t left = w->in_end - w->in_begin;

	if (!left)
		emptied(&w->in, &w->in_room, &w->in_begin, &w->in_end);
	if (left < sizeof(*header))
		return 0;
	memcpy(header, w->in + w->in_begin, sizeof(*header));
	if (header->length > WIRE_MAX)
		return -EPROTO;
	if (left < sizeof(*header) + header->length)
		return 0;
	*data = w->in + w->in_begin + sizeof(*header);
	w->in_begin += sizeof(*header) + header->length;
	return 1;
}

/* ---- waiting ------------------------------------------------------------------------ */

int wire_write(int fd, uint32_t type, uint32_t rank, uint32_t id, const void *data, size_t length)
{
	struct wire_header header = { length, type, rank, id };
	struct iovec iov[2] = { { &header, sizeof(header) }, { (void *)data, length } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	while (iov[0].iov_len + iov[1].iov_len) {
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (int i = 0; i < 2; i++) {
			size_t part = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;

			iov[i].iov_base = (char *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			n -= part;
		}
	}
	return 0;
}

static int read_all(int fd, void *buffer, size_t length)
{
	while (length) {
		ssize_t n = recv(fd, buffer, length, 0);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buffer = (char *)buffer + n;
		length -= n;
	}
	return 0;
}

int wire_read(int fd, struct wire_header *header, uint8_t **data)
{
	int err = read_all(fd, header, sizeof(*header));

	*data = NULL;
	if (err || !header->length)
		return err;
	if (header->length > WIRE_MAX)
		return -EPROTO;
	*data = malloc(header->length);
	err = *data ? read_all(fd, *data, header->length) : -ENOMEM;
	if (err) {
		free(*data);
		*data = NULL;
	}
	return err;
}
