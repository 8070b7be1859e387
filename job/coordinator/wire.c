// SPDX-License-Identifier: GPL-2.0
/* Framing of messages over a stream socket.  See wire.h. */
#include "job/coordinator/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_AT_ONCE	65536
#define ROOM_KEPT	(1u << 17)	/* larger buffers are freed when they are empty */
#define SEAL_ENOUGH	(1u << 20)	/* bytes under one seal, unless one message has more */
#define SEALED_MAX	(WIRE_MAX + (uint32_t)sizeof(struct wire_header))

#define ROOM	(512 << 10)		/* bytes; the limit of net.core.rmem_max may be less */
#define PROBES	3			/* of a silent peer, at equal distances, before it is given up */

/* ---- polled ------------------------------------------------------------------- */

void wire_open(struct wire *w, int fd)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
}

void wire_watch_peer(int fd, unsigned int silence_s)
{
	int one = 1, interval = silence_s < PROBES ? 1 : silence_s / PROBES;
	int unanswered = PROBES - 1;	/* the first is sent after one interval of silence */
	unsigned int unanswered_ms = silence_s * 1000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &unanswered, sizeof(unanswered));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

void wire_make_room(int fd)
{
	int room = ROOM;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
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

/* Room for `more` bytes after those between *begin and *end, which may move. */
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

/* ---- seals -------------------------------------------------------------------- */

void wire_seal(struct wire *w, const uint8_t in_key[SEAL_KEY], const uint8_t out_key[SEAL_KEY])
{
	w->in_seal = w->out_seal = (struct seal){ 0 };
	memcpy(w->in_seal.key, in_key, SEAL_KEY);
	memcpy(w->out_seal.key, out_key, SEAL_KEY);
	w->sealed = true;
}

/* Puts one seal on all that has been queued since the last one. */
static void close_seal(struct wire *w)
{
	struct wire_seal seal;
	struct iovec part[2];
	uint8_t *at;

	if (!w->out_open)
		return;
	at = w->out + w->out_end - w->out_open;
	seal.length = w->out_open - sizeof(seal);
	part[0] = (struct iovec){ &seal.length, sizeof(seal.length) };
	part[1] = (struct iovec){ at + sizeof(seal), seal.length };
	seal_make(&w->out_seal, part, 2, seal.tag);
	memcpy(at, &seal, sizeof(seal));
	w->out_open = 0;
}

/* Checks the next seal: 1 its messages are complete, 0 not yet, or -errno. */
static int open_seal(struct wire *w)
{
	size_t left = w->in_end - w->in_begin;
	struct wire_seal seal;
	struct iovec part[2];

	if (left < sizeof(seal))
		return 0;
	memcpy(&seal, w->in + w->in_begin, sizeof(seal));
	if (!seal.length || seal.length > SEALED_MAX)
		return -EPROTO;
	if (left < sizeof(seal) + seal.length)
		return 0;
	part[0] = (struct iovec){ &seal.length, sizeof(seal.length) };
	part[1] = (struct iovec){ w->in + w->in_begin + sizeof(seal), seal.length };
	if (seal_check(&w->in_seal, part, 2, seal.tag))
		return -EBADMSG;
	w->in_begin += sizeof(seal);
	w->in_sound = seal.length;
	return 1;
}

/* ---- messages ----------------------------------------------------------------- */

void wire_queue(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
		const void *data, size_t length)
{
	struct wire_header header = { length, type, rank, id };
	size_t size = sizeof(header) + length, head;
	uint8_t *at;

	if (w->fd < 0)
		return;
	if (w->out_open + size > SEAL_ENOUGH)
		close_seal(w);
	head = w->sealed && !w->out_open ? sizeof(struct wire_seal) : 0;
	at = room_for(&w->out, &w->out_room, &w->out_begin, &w->out_end, head + size);
	if (!at) {			/* the peer sees the connection end and gives up */
		shutdown(w->fd, SHUT_RDWR);
		return;
	}
	memcpy(at + head, &header, sizeof(header));
	if (length)
		memcpy(at + head + sizeof(header), data, length);
	w->out_end += head + size;
	if (w->sealed)
		w->out_open += head + size;
}

void wire_send(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
	       const void *data, size_t length)
{
	wire_queue(w, type, rank, id, data, length);
	wire_flush(w);
}

int wire_flush(struct wire *w)
{
	close_seal(w);
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

int wire_fill_once(struct wire *w)
{
	uint8_t *at = room_for(&w->in, &w->in_room, &w->in_begin, &w->in_end, READ_AT_ONCE);
	ssize_t n;

	if (!at)
		return -ENOMEM;
	n = recv(w->fd, at, READ_AT_ONCE, 0);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -errno;
	w->in_end += n;
	return n == READ_AT_ONCE;
}

int wire_fill(struct wire *w)
{
	int more;

	do
		more = wire_fill_once(w);
	while (more > 0);
	return more;
}

int wire_next(struct wire *w, struct wire_header *header, const uint8_t **data)
{
	size_t left = w->in_end - w->in_begin, size;
	int got;

	if (!left)
		emptied(&w->in, &w->in_room, &w->in_begin, &w->in_end);
	if (w->sealed && !w->in_sound && (got = open_seal(w)) != 1)
		return got;
	left = w->sealed ? w->in_sound : left;
	if (left < sizeof(*header))
		return w->sealed ? -EPROTO : 0;
	memcpy(header, w->in + w->in_begin, sizeof(*header));
	if (header->length > WIRE_MAX)
		return -EPROTO;
	size = sizeof(*header) + header->length;
	if (left < size)
		return w->sealed ? -EPROTO : 0;	/* a seal covers whole messages */
	*data = w->in + w->in_begin + sizeof(*header);
	w->in_begin += size;
	w->in_sound -= w->sealed ? size : 0;
	return 1;
}
