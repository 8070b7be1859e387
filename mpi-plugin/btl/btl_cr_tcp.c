// SPDX-License-Identifier: GPL-2.0
/*
 * TCP channels: one socket per pair of ranks, for both directions (the reply
 * carries the acknowledgement), and one epoll instance for all of them.
 *
 * A rank with something to send connects, sends its rank and a proof that it knows
 * the other side's key (btl_cr_tcp.h), and sends frames only when that side has agreed.
 * If both connect at once, the lower rank's connection stays: the lower rank rejects
 * the other's, and the higher rank drops its own when the lower one's comes in.
 * The bytes of this handshake do not count in the bookmarks.
 */
#include "btl_cr_gate.h"
#include "btl_cr_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 16
#define READS 4				/* in a row from one peer */
#define PATIENCE_NS 20000000LL		/* in one call, for insist() */
#define SYN_RETRIES 2			/* 7 s for an address that does not answer */
#define ALIVE_S 5			/* between questions whether the peer is there */
#define LOST_STEP_NS 100000000LL	/* counts as waited at a time: the job may have been suspended */

/* The connecting side of a handshake. */
struct cr_tcp_hello {
	struct cr_tcp_meeting meeting;
	struct cr_tcp_answer answer;
	size_t have;			/* bytes of the challenge, then of the answer */
};

/* A connection that has failed, and what it has not delivered with it. */
static struct {
	cr_endpoint *ep;		/* NULL: none */
	int error;
	int64_t looked, waited;		/* ns */
} failure;

static int events = -1;
unsigned int cr_tcp_count;

/* ---- epoll ------------------------------------------------------------------ */

int cr_tcp_watch(int operation, int fd, uint32_t what, uint64_t cookie)
{
	struct epoll_event event = { .events = what, .data.u64 = cookie };

	return epoll_ctl(events, operation, fd, &event) ? -errno : 0;
}

static int watch_endpoint(int operation, cr_endpoint *ep, uint32_t what)
{
	return cr_tcp_watch(operation, ep->fd, what, (uintptr_t)ep);
}

void cr_tcp_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/*
 * While it connects: the peer, which answers when it looks into MPI, may have vanished meanwhile with
 * an answer that got lost, and this side, which waits for that, sends nothing that would show it.
 */
static void watch_alive(int fd, int on)
{
	int pause = ALIVE_S;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &pause, sizeof(pause));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
}

int cr_tcp_open(void)
{
	int rc;

	events = epoll_create1(EPOLL_CLOEXEC);
	if (events < 0)
		return -errno;
	rc = cr_guest_open();
	if (rc)
		cr_tcp_close();
	return rc;
}

/*
 * A child of a program that forks has it open, too: for the peer, and for epoll, a close alone would
 * not be the end.
 */
void cr_tcp_end(int fd)
{
	if (events >= 0)
		epoll_ctl(events, EPOLL_CTL_DEL, fd, NULL);
	shutdown(fd, SHUT_RDWR);
	close(fd);
	cr_tcp_count--;
}

void cr_tcp_drop(cr_endpoint *ep)
{
	if (ep->fd >= 0)
		cr_tcp_end(ep->fd);
	free(ep->hello);
	ep->hello = NULL;
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
	failure.ep = NULL;
	cr_guest_close();
	if (events >= 0)
		close(events);
	events = -1;
}

/* ---- connecting ------------------------------------------------------------- */

void cr_tcp_prove(uint8_t out[SEAL_KEY], const uint8_t key[CR_ADDRESS_KEY], const char *purpose,
		  const struct cr_tcp_meeting *meeting)
{
	const struct iovec all = { (void *)meeting, sizeof(*meeting) };

	seal_proof(out, key, CR_ADDRESS_KEY, purpose, &all, 1);
}

static int greet(cr_endpoint *ep)
{
	struct cr_tcp_meeting *meeting = &ep->hello->meeting;
	struct cr_tcp_greeting greeting = { .magic = CR_TCP_MAGIC };
	int rc;

	meeting->from = greeting.rank = opal_proc_local_get()->proc_name.vpid;
	meeting->to = ep->rank;
	meeting->sealed = cr_param.seal;
	rc = seal_random(meeting->number, CR_TCP_NUMBER);
	if (rc)
		return rc;
	memcpy(greeting.number, meeting->number, CR_TCP_NUMBER);
	cr_tcp_prove(greeting.proof, ep->address.key, "kcr-mpi rank", meeting);
	/* These few bytes fit into a new socket. */
	if (send(ep->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting))
		return -ENOTCONN;
	ep->hello->have = 0;
	ep->tcp_state = CR_TCP_GREETING;
	return 0;
}

/* Creates a socket; closes a guest if there is no free file descriptor. */
static int make_socket(int family)
{
	int fd;

	do
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && cr_guest_drop_oldest());
	return fd < 0 ? -errno : fd;
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
	if (!error && !(ep->hello = calloc(1, sizeof(*ep->hello))))
		error = ENOMEM;
	if (!error)
		error = -watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN);
	if (error)
		connect_failed(ep, -error);
	else
		ep->tcp_state = CR_TCP_CALLED;
}

static void come_up(cr_endpoint *ep, const uint8_t *key, const struct cr_tcp_meeting *meeting)
{
	if (cr_param.seal)
		cr_seal_begin(ep, key, meeting);
	free(ep->hello);
	ep->hello = NULL;
	watch_alive(ep->fd, 0);
	ep->tcp_state = CR_TCP_UP;
	ep->retry_at = ep->failing_since = 0;
}

/* Reads the first `size` bytes of the other side: have all arrived? */
static bool hear(cr_endpoint *ep, void *to, size_t size)
{
	ssize_t length = recv(ep->fd, (char *)to + ep->hello->have, size - ep->hello->have, 0);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length <= 0)
		connect_failed(ep, -ECONNREFUSED);
	else
		ep->hello->have += length;
	return length > 0 && ep->hello->have == size;
}

static void hear_challenge(cr_endpoint *ep)
{
	struct cr_tcp_challenge *challenge = &ep->hello->meeting.challenge;
	int rc;

	if (!hear(ep, challenge, sizeof(*challenge)))
		return;
	rc = challenge->magic == CR_TCP_MAGIC ? greet(ep) : -EPROTO;
	if (rc)
		connect_failed(ep, rc);
}

/* Data may follow the answer at once. */
static void hear_answer(cr_endpoint *ep)
{
	struct cr_tcp_answer *answer = &ep->hello->answer;
	uint8_t proof[SEAL_KEY];

	if (!hear(ep, answer, sizeof(*answer)))
		return;
	cr_tcp_prove(proof, ep->address.key, "kcr-mpi peer", &ep->hello->meeting);
	if (seal_same(proof, answer->proof, SEAL_KEY))
		come_up(ep, ep->address.key, &ep->hello->meeting);
	else
		connect_failed(ep, -EACCES);
}

/* The next step of a connection that is not up.  Returns whether it is now. */
static bool handshake(cr_endpoint *ep)
{
	if (ep->tcp_state == CR_TCP_CONNECTING)
		connect_done(ep);
	else if (ep->tcp_state == CR_TCP_CALLED)
		hear_challenge(ep);
	else if (ep->tcp_state == CR_TCP_GREETING)
		hear_answer(ep);
	return ep->tcp_state == CR_TCP_UP;
}

/*
 * A program that calls MPI rarely and briefly would be late for every step of the
 * handshake.  So after one failure all steps are tried in one call.
 */
static void insist(cr_endpoint *ep)
{
	int64_t end = cr_now() + PATIENCE_NS, left;

	while (ep->tcp_state != CR_TCP_DOWN && ep->tcp_state != CR_TCP_UP &&
	       (left = end - cr_now()) > 0) {
		struct pollfd socket = {
			ep->fd, ep->tcp_state == CR_TCP_CONNECTING ? POLLOUT : POLLIN, 0,
		};

		if (poll(&socket, 1, left / 1000000 + 1) > 0)
			handshake(ep);
	}
}

int cr_tcp_connect(cr_endpoint *ep)
{
	struct sockaddr_storage address;
	socklen_t length = cr_address_socket(&ep->address, ep->attempt, &address);
	int rc, requests = SYN_RETRIES;

	if (!length)
		return -ENETUNREACH;
	ep->fd = make_socket(address.ss_family);
	if (ep->fd < 0)
		return ep->fd;
	cr_tcp_count++;
	cr_tcp_no_delay(ep->fd);
	watch_alive(ep->fd, 1);
	setsockopt(ep->fd, IPPROTO_TCP, TCP_SYNCNT, &requests, sizeof(requests));
	if (connect(ep->fd, (void *)&address, length) && errno != EINPROGRESS)
		rc = -errno;
	else
		rc = watch_endpoint(EPOLL_CTL_ADD, ep, EPOLLOUT);
	if (rc) {
		cr_tcp_drop(ep);
		return rc;
	}
	ep->tcp_state = CR_TCP_CONNECTING;
	if (ep->failing_since && !cr_gate_mine())
		insist(ep);
	return 0;
}

/* ---- being connected to ----------------------------------------------------- */

int cr_tcp_welcome(const struct cr_tcp_meeting *meeting, int fd)
{
	uint32_t own = meeting->to;
	struct cr_tcp_answer answer;
	cr_endpoint *ep;

	if (meeting->from == own)
		return -EACCES;
	ep = cr_endpoint_get(meeting->from);
	if (!ep)
		return -ENOMEM;
	if (ep->tcp_state == CR_TCP_UP || (ep->tcp_state != CR_TCP_DOWN && own < ep->rank))
		return -EALREADY;
	cr_tcp_prove(answer.proof, cr_address_own.key, "kcr-mpi peer", meeting);
	if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
		return -ENOTCONN;
	cr_tcp_drop(ep);
	ep->fd = fd;
	if (watch_endpoint(EPOLL_CTL_MOD, ep, EPOLLIN)) {
		ep->fd = -1;
		return -ENOMEM;
	}
	come_up(ep, cr_address_own.key, meeting);
	if (!cr_gate_mine())
		cr_endpoint_flush(ep);
	return 0;
}

/* ---- traffic ---------------------------------------------------------------- */

int cr_tcp_failed(cr_endpoint *ep, int error)
{
	if (!failure.ep) {
		failure.ep = ep;
		failure.error = error;
		failure.looked = cr_now();
		failure.waited = 0;
	}
	return error;
}

/* The connection has ended; if the peer has failed, mpirun ends the job. */
static void lost(cr_endpoint *ep)
{
	cr_tcp_drop(ep);
	ep->lost = true;
}

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
		cr_tcp_failed(ep, -errno);
		lost(ep);
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
	if (OPAL_UNLIKELY(cr_param.seal) && !frag->begun && cr_seal_frag(ep, frag))
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

void cr_tcp_lost_nothing(cr_endpoint *ep)
{
	if (failure.ep == ep && cr_endpoint_idle(ep))
		failure.ep = NULL;
}

/*
 * As a rule a rank has failed, and mpirun, which may hear of it later, ends the job or has it recover:
 * who aborts before that would end it for good.  If it was the network, the ranks that wait for what
 * is lost would do so for ever.
 */
static void await_end(void)
{
	int64_t now = cr_now(), step = now - failure.looked;

	failure.looked = now;
	failure.waited += step < LOST_STEP_NS ? step : LOST_STEP_NS;
	if (failure.waited > cr_param.lost_timeout * 1000000000LL)
		cr_fatal(failure.ep, "the connection is lost", failure.error);
}

ssize_t cr_tcp_pull(cr_endpoint *ep)
{
	ssize_t length;
	size_t room;
	void *space;
	int rc;

	if (ep->tcp_state != CR_TCP_UP && ep->tcp_state != CR_TCP_GREETING)
		return 0;
	if (ep->tcp_state == CR_TCP_GREETING && !handshake(ep))
		return 0;
	space = cr_stream_space(&ep->stream, &room);
	if (!space)
		return -ENOMEM;
	length = recv(ep->fd, space, room, 0);
	if (length > 0) {
		cr_stream_advance(&ep->stream, length);
		ep->received += length;
		rc = OPAL_UNLIKELY(cr_param.seal) ? cr_seal_arrived(ep, length, true) : 0;
		return rc ? rc : length;
	}
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return length ? cr_tcp_failed(ep, -errno) : -ECONNRESET;
}

static int receive(cr_endpoint *ep)
{
	int count = 0, reads = READS, rc;
	ssize_t length;

	while (reads--) {
		length = cr_tcp_pull(ep);
		if (length == -EBADMSG)
			cr_stream_deliver(ep);
		if (length == -ENOMEM)
			cr_fatal(ep, "received bytes cannot be kept", -ENOMEM);
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

static int endpoint_event(cr_endpoint *ep, uint32_t what)
{
	int count = 0;

	switch (ep->tcp_state) {
	case CR_TCP_CONNECTING:
	case CR_TCP_CALLED:
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

int cr_tcp_progress(void)
{
	struct epoll_event list[EVENTS];
	int ready = epoll_wait(events, list, EVENTS, 0), count = 0;

	if (OPAL_UNLIKELY(failure.ep))
		await_end();
	for (int i = 0; i < ready; i++) {
		uint64_t cookie = list[i].data.u64;

		count += cr_guest_is(cookie) ? cr_guest_event(cookie) :
			 endpoint_event(endpoint_of(cookie), list[i].events);
	}
	cr_guest_settle(ready < EVENTS);
	return count;
}

int cr_tcp_handshakes(void)
{
	struct epoll_event list[EVENTS];
	int ready = epoll_wait(events, list, EVENTS, 0), count = 0;

	for (int i = 0; i < ready; i++) {
		uint64_t cookie = list[i].data.u64;

		if (cr_guest_is(cookie))
			count += cr_guest_event(cookie);
		else if (endpoint_of(cookie)->tcp_state != CR_TCP_UP)
			count += handshake(endpoint_of(cookie));
	}
	cr_guest_settle(ready < EVENTS);
	return count;
}
