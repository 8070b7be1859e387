// SPDX-License-Identifier: GPL-2.0
/*
 * TCP channels: one socket per pair of ranks, for both directions (the reply
 * carries the acknowledgement), and one epoll instance for all of them.
 *
 * Who has something to send connects, says who it is and which key it knows,
 * and sends only when the other side has agreed.  If both connect at once, the
 * lower rank's connection is the one that stays: it turns the other away, and
 * the higher rank gives its own up when the lower one's comes in.  What is said
 * here is outside of the bookmarks.
 */
#include "btl_cr.h"
#include "btl_cr_gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING_MAGIC 0x3152434bu	/* "KCR1" */
#define AGREED 'y'
#define EVENTS 16
#define READS 4				/* in a row from one peer */

struct greeting {
	uint32_t magic;
	uint32_t rank;
	uint64_t key;
};

/* A connection that came in and has not said who it is. */
struct guest {
	int fd;
	size_t have;
	struct greeting greeting;
	struct guest *next;
};

static int listener = -1, events = -1;
static struct guest *guests;
unsigned int cr_tcp_count;

/* ---- epoll ------------------------------------------------------------------ */

/* The lowest bit of the cookie tells guests from endpoints; 0 is the listener. */
static int watch(int operation, int fd, uint32_t what, uint64_t cookie)
{
	struct epoll_event event = { .events = what, .data.u64 = cookie };

	return epoll_ctl(events, operation, fd, &event) ? -errno : 0;
}

static int watch_endpoint(int operation, cr_endpoint *ep, uint32_t what)
{
	return watch(operation, ep->fd, what, (uintptr_t)ep);
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* ---- the listening end ------------------------------------------------------ */

static int listen_on(int family)
{
	struct sockaddr_storage address = { .ss_family = family };
	socklen_t length = sizeof(address);
	int fd, zero = 0, rc;

	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, (void *)&address, sizeof(address)) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (void *)&address, &length)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	cr_address_own.port = ntohs(family == AF_INET6 ?
				    ((struct sockaddr_in6 *)&address)->sin6_port :
				    ((struct sockaddr_in *)&address)->sin_port);
	return fd;
}

int cr_tcp_open(void)
{
	int rc;

	events = epoll_create1(EPOLL_CLOEXEC);
	if (events < 0)
		return -errno;
	listener = listen_on(AF_INET6);
	if (listener < 0)
		listener = listen_on(AF_INET);
	rc = listener < 0 ? listener : watch(EPOLL_CTL_ADD, listener, EPOLLIN, 0);
	if (rc)
		cr_tcp_close();
	return rc;
}

static void free_guest(struct guest *guest)
{
	struct guest **at;

	for (at = &guests; *at != guest; at = &(*at)->next)
		;
	*at = guest->next;
	free(guest);
}

void cr_tcp_drop(cr_endpoint *ep)
{
	if (ep->fd >= 0) {
		close(ep->fd);
		cr_tcp_count--;
	}
	ep->fd = -1;
	ep->tcp_state = CR_TCP_DOWN;
	ep->blocked = false;
	if (ep->channel == CR_CHANNEL_TCP)
		ep->channel = CR_CHANNEL_NONE;
}

void cr_tcp_close(void)
{
	for (unsigned int i = 0; i < cr_endpoints_count; i++)
		cr_tcp_drop(cr_endpoints[i]);
	while (guests) {
		close(guests->fd);
		cr_tcp_count--;
		free_guest(guests);
	}
	if (listener >= 0)
		close(listener);
	if (events >= 0)
		close(events);
	listener = events = -1;
}

/* ---- connecting ------------------------------------------------------------- */

static int greet(cr_endpoint *ep)
{
	struct greeting greeting = {
		.magic = GREETING_MAGIC,
		.rank = opal_proc_local_get()->proc_name.vpid,
		.key = ep->address.key,
	};

	/* A new socket takes these few bytes at once. */
	if (send(ep->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
		return -ENOTCONN;
	ep->tcp_state = CR_TCP_GREETING;
	return watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN);
}

int cr_tcp_connect(cr_endpoint *ep)
{
	struct sockaddr_storage address;
	socklen_t length = cr_address_socket(&ep->address, ep->attempt, &address);
	int rc;

	if (!length)
		return -ENETUNREACH;
	ep->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ep->fd < 0)
		return -errno;
	cr_tcp_count++;
	no_delay(ep->fd);
	if (connect(ep->fd, (void *)&address, length) && errno != EINPROGRESS)
		rc = -errno;
	else
		rc = watch_endpoint(EPOLL_CTL_ADD, ep, EPOLLOUT);
	if (rc)
		cr_tcp_drop(ep);
	else
		ep->tcp_state = CR_TCP_CONNECTING;
	return rc;
}

static void connect_failed(cr_endpoint *ep, int error)
{
	cr_tcp_drop(ep);
	cr_endpoint_retry(ep, error);
}

static void connect_done(cr_endpoint *ep)
{
	socklen_t length = sizeof(int);
	int error = 0;

	if (getsockopt(ep->fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (!error)
		error = -greet(ep);
	if (error)
		connect_failed(ep, -error);
}

static void come_up(cr_endpoint *ep)
{
	ep->tcp_state = CR_TCP_UP;
	ep->retry_at = ep->failing_since = 0;
}

/* Data may follow the answer at once. */
static void hear_answer(cr_endpoint *ep)
{
	char answer = 0;
	ssize_t length = recv(ep->fd, &answer, 1, 0);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length == 1 && answer == AGREED)
		come_up(ep);
	else
		connect_failed(ep, -ECONNREFUSED);
}

/* ---- being connected to ----------------------------------------------------- */

static int accept_guests(void)
{
	struct guest *guest;
	int fd, count = 0;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		guest = calloc(1, sizeof(*guest));
		if (!guest || watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uintptr_t)guest | 1)) {
			close(fd);
			free(guest);
			continue;
		}
		no_delay(fd);
		guest->fd = fd;
		guest->next = guests;
		guests = guest;
		cr_tcp_count++;
		count++;
	}
	return count;
}

static int welcome(const struct greeting *greeting, int fd)
{
	uint32_t own = opal_proc_local_get()->proc_name.vpid;
	const char agreed = AGREED;
	cr_endpoint *ep;

	if (greeting->magic != GREETING_MAGIC || greeting->key != cr_address_own.key ||
	    greeting->rank == own)
		return -EACCES;
	ep = cr_endpoint_get(greeting->rank);
	if (!ep)
		return -ENOMEM;
	if (ep->tcp_state == CR_TCP_UP || (ep->tcp_state != CR_TCP_DOWN && own < ep->rank))
		return -EALREADY;
	if (send(fd, &agreed, 1, MSG_NOSIGNAL) != 1)
		return -ENOTCONN;
	cr_tcp_drop(ep);
	ep->fd = fd;
	if (watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN)) {
		ep->fd = -1;
		return -ENOMEM;
	}
	come_up(ep);
	if (!cr_gate_mine())
		cr_endpoint_flush(ep);
	return 0;
}

static int hear_guest(struct guest *guest)
{
	ssize_t length = recv(guest->fd, (char *)&guest->greeting + guest->have,
			      sizeof(guest->greeting) - guest->have, 0);
	struct greeting greeting;
	int fd = guest->fd;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (length > 0) {
		guest->have += length;
		if (guest->have < sizeof(guest->greeting))
			return 0;
	}
	greeting = guest->greeting;
	free_guest(guest);
	if (length <= 0 || welcome(&greeting, fd)) {
		close(fd);
		cr_tcp_count--;
	}
	return 1;
}

/* ---- traffic ---------------------------------------------------------------- */

size_t cr_tcp_send(cr_endpoint *ep, const struct iovec *iov, unsigned int count)
{
	const struct msghdr message = {
		.msg_iov = (struct iovec *)iov, .msg_iovlen = count,
	};
	ssize_t length;

	do
		length = sendmsg(ep->fd, &message, MSG_NOSIGNAL);
	while (length < 0 && errno == EINTR);
	if (length >= 0) {
		ep->sent += length;
		return length;
	}
	if (errno != EAGAIN) {
		cr_fatal(ep, "the connection is lost", -errno);
		ep->blocked = true;
	} else if (!ep->blocked && !watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN | EPOLLOUT)) {
		ep->blocked = true;
	}
	return 0;
}

int cr_tcp_write(cr_endpoint *ep, struct cr_frag *frag)
{
	size_t length;

	if (ep->tcp_state != CR_TCP_UP)
		return 0;
	while (frag->iov_next < frag->iov_count) {
		length = cr_tcp_send(ep, frag->iov + frag->iov_next,
				     frag->iov_count - frag->iov_next);
		if (!length)
			return 0;
		cr_frag_advance(frag, length);
	}
	return 1;
}

ssize_t cr_tcp_pull(cr_endpoint *ep)
{
	ssize_t length;
	size_t room;
	void *space;

	if (ep->tcp_state == CR_TCP_GREETING)
		hear_answer(ep);
	if (ep->tcp_state != CR_TCP_UP)
		return 0;
	space = cr_stream_space(&ep->stream, &room);
	if (!space)
		return -ENOMEM;
	length = recv(ep->fd, space, room, 0);
	if (length > 0) {
		cr_stream_advance(&ep->stream, length);
		ep->received += length;
		return length;
	}
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return length ? -errno : -ECONNRESET;
}

/* The peer has gone; if it was not its time, mpirun ends the job. */
static void lost(cr_endpoint *ep)
{
	cr_tcp_drop(ep);
	ep->lost = true;
}

static int receive(cr_endpoint *ep)
{
	int count = 0, reads = READS, rc;
	ssize_t length;

	while (reads--) {
		length = cr_tcp_pull(ep);
		if (length < 0)
			lost(ep);
		if (length <= 0)
			break;
		count += cr_stream_deliver(ep) + 1;
		if (!ep->stream.direct_left)
			break;
	}
	rc = cr_stream_settle(&ep->stream);
	if (rc)
		cr_fatal(ep, "received bytes cannot be kept", rc);
	return count;
}

/* The next step of one that is not up.  Returns whether it is now. */
static bool handshake(cr_endpoint *ep)
{
	if (ep->tcp_state == CR_TCP_CONNECTING)
		connect_done(ep);
	else if (ep->tcp_state == CR_TCP_GREETING)
		hear_answer(ep);
	return ep->tcp_state == CR_TCP_UP;
}

static int endpoint_event(cr_endpoint *ep, uint32_t what)
{
	int count = 0;

	switch (ep->tcp_state) {
	case CR_TCP_CONNECTING:
	case CR_TCP_GREETING:
		if (handshake(ep))
			count = cr_endpoint_flush(ep);
		break;
	case CR_TCP_UP:
		if (what & (EPOLLIN | EPOLLHUP | EPOLLERR))
			count = receive(ep);
		if ((what & EPOLLOUT) && ep->tcp_state == CR_TCP_UP) {
			ep->blocked = false;
			watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN);
			count += cr_endpoint_flush(ep);
		}
		break;
	case CR_TCP_DOWN:
		break;
	}
	return count;
}

static cr_endpoint *endpoint_of(uint64_t cookie)
{
	return (cr_endpoint *)(uintptr_t)cookie;
}

/* For the listener and the guests: what has come, 0 or more. */
static int guest_event(uint64_t cookie)
{
	return cookie ? hear_guest((struct guest *)(uintptr_t)(cookie & ~1UL)) : accept_guests();
}

static bool is_guest(uint64_t cookie)
{
	return !cookie || cookie & 1;
}

int cr_tcp_progress(void)
{
	struct epoll_event list[EVENTS];
	int ready = epoll_wait(events, list, EVENTS, 0), count = 0;

	for (int i = 0; i < ready; i++) {
		uint64_t cookie = list[i].data.u64;

		count += is_guest(cookie) ? guest_event(cookie) :
			 endpoint_event(endpoint_of(cookie), list[i].events);
	}
	return count;
}

int cr_tcp_handshakes(void)
{
	struct epoll_event list[EVENTS];
	int ready = epoll_wait(events, list, EVENTS, 0), count = 0;

	for (int i = 0; i < ready; i++) {
		uint64_t cookie = list[i].data.u64;

		if (is_guest(cookie))
			count += guest_event(cookie);
		else if (endpoint_of(cookie)->tcp_state != CR_TCP_UP)
			count += handshake(endpoint_of(cookie));
	}
	return count;
}
