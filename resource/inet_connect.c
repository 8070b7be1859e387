// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections of this machine at a restart: accepted by their listening socket if that is
 * in the tree, with the old addresses if these are available (old connections may linger
 * for a while, and another machine has others), else over loopback.
 */
#include "resource/inet_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_address.h"
#include "resource/socket.h"

#define ACCEPT_MS	500	/* for a connection made on this machine */
#define CONNECT_S	10	/* if its listener has no room */
#define LISTENERS_MAX	64	/* at one port */

int inet_new(const Kcr__InetSocket *s)
{
	int fd = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);

	if (fd < 0)
		return -errno;
	socket_options_set(fd, s->option, s->n_option);
	return fd;
}

Kcr__InetSocket inet_nobody(int family)
{
	Kcr__InetSocket nobody = KCR__INET_SOCKET__INIT;

	nobody.family = family;
	nobody.type = SOCK_STREAM;
	nobody.protocol = IPPROTO_TCP;
	return nobody;
}

/* ---- connecting ----------------------------------------------------------------------- */

static int connect_soon(int fd, const struct inet_place *to)
{
	struct timeval before, limit = { .tv_sec = CONNECT_S };
	socklen_t length = sizeof(before);
	int err;

	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &before, &length) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		return -errno;
	err = connect(fd, &to->a.any, to->length) ? -errno : 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof(before));
	return err == -EINPROGRESS ? -ETIMEDOUT : err;
}

/* From the old address if that is free. */
static int connect_to(const Kcr__InetSocket *client, const struct inet_place *to)
{
	union inet_address from;
	socklen_t length = inet_address_get(&client->local, &from);
	int fd, err = 0;

	for (int attempt = length ? 0 : 1; attempt < 2; attempt++) {
		fd = inet_new(client);
		if (fd < 0)
			return fd;
		err = attempt ? 0 : inet_bind_address(fd, &from, length);
		if (!err)
			err = connect_soon(fd, to);
		if (!err)
			return fd;
		close(fd);
	}
	return err;
}

static bool has_loopback(const Kcr__InetSocket *client)
{
	struct inet_place place;

	inet_address_loopback(client->family, client, &place);
	return inet_address_is_here(&place, client);
}

int inet_connect(const Kcr__InetSocket *client, int listener, bool old)
{
	struct inet_place place[1 + INET_PLACES] = {};
	size_t count = 0;
	int fd = -EADDRNOTAVAIL;

	place->length = old ? inet_address_get(&client->remote, &place->a) : 0;
	if (place->length && inet_address_is_here(place, client))
		count++;
	count += inet_address_reach(listener, client, place + count);
	for (size_t i = 0; i < count && fd < 0; i++)
		fd = connect_to(client, &place[i]);
	return count || has_loopback(client) ? fd : -ENETUNREACH;
}

/* ---- being refused ---------------------------------------------------------------------- */

/* A port of loopback at which nobody listens as long as this socket is there. */
static int take_port(const Kcr__InetSocket *client, struct inet_place *at)
{
	int fd = socket(client->family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), err;

	if (fd < 0)
		return -errno;
	inet_address_loopback(client->family, client, at);
	err = inet_bind_address(fd, &at->a, at->length);
	if (!err && getsockname(fd, &at->a.any, &at->length))
		err = -errno;
	if (err)
		close(fd);
	return err ?: fd;
}

/* Only an attempt that does not wait leaves its error there. */
static int be_refused(int fd, const struct inet_place *at)
{
	struct pollfd p = { .fd = fd };
	int flags = fcntl(fd, F_GETFL), err = 0;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (!connect(fd, &at->a.any, at->length))
		err = -EISCONN;
	else if (errno != EINPROGRESS)
		err = -errno;
	else if (poll(&p, 1, ACCEPT_MS) <= 0 || !(p.revents & POLLERR))
		err = -ETIMEDOUT;
	fcntl(fd, F_SETFL, flags);
	return err;
}

int inet_connect_refused(const Kcr__InetSocket *s)
{
	struct inet_place at = {};
	union inet_address from;
	socklen_t length = inet_address_get(&s->local, &from);
	int port = take_port(s, &at), fd = -1, err = port < 0 ? port : 0;

	for (int attempt = length ? 0 : 1; attempt < 2 && port >= 0; attempt++) {
		fd = inet_new(s);
		err = fd < 0 ? fd : attempt ? 0 : inet_bind_address(fd, &from, length);
		err = err ?: be_refused(fd, &at);
		if (!err)
			break;
		if (fd >= 0)
			close(fd);
	}
	if (port >= 0)
		close(port);
	return err ?: fd;
}

/* ---- accepting -------------------------------------------------------------------------- */

/* A listening socket for one connection: at the old address or anywhere on loopback. */
static int listen_once(const Kcr__InetSocket *client, const Kcr__InetSocket *server, bool anywhere)
{
	int fd = socket(server->family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), off = 0, err = 0;
	struct inet_place at;

	if (fd < 0)
		return -errno;
	at.length = inet_address_get(&server->local, &at.a);
	if (anywhere || !at.length)
		inet_address_loopback(server->family, client, &at);
	else
		inet_bind_device(fd, server);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	err = inet_bind_address(fd, &at.a, at.length);
	if (!err && listen(fd, 1))
		err = -errno;
	if (err)
		close(fd);
	return err == -EADDRNOTAVAIL && anywhere ? -ENETUNREACH : err ?: fd;
}

/* Is `fd`, just accepted, the other end of `client`? */
static bool is_end_of(int fd, int client)
{
	union inet_address theirs = {}, ours = {};
	socklen_t length = sizeof(theirs), our_length = sizeof(ours);

	return getpeername(fd, &theirs.any, &length) ||
	       getsockname(client, &ours.any, &our_length) ||
	       *inet_address_port(&theirs) == *inet_address_port(&ours);
}

/*
 * Accepts the connection of `client` from whichever socket has got it; a stranger's
 * connection is dropped.  -EAGAIN: it is not there, as with TCP_DEFER_ACCEPT.
 */
static int accept_from(struct pollfd *listener, size_t count, int client)
{
	int fd;

	while (poll(listener, count, ACCEPT_MS) > 0) {
		for (size_t i = 0; i < count; i++) {
			if (!listener[i].revents)
				continue;
			fd = accept4(listener[i].fd, NULL, NULL, SOCK_CLOEXEC);
			if (fd < 0)
				return -errno;
			if (is_end_of(fd, client))
				return fd;
			close(fd);
		}
	}
	return -EAGAIN;
}

static bool listens_at(const Kcr__File *f, in_port_t port)
{
	union inet_address a;

	return f->kind_case == KCR__FILE__KIND_INET_SOCKET && f->inet_socket->listening &&
	       inet_address_get(&f->inet_socket->local, &a) && *inet_address_port(&a) == port;
}

const Kcr__File *inet_find_listener(const struct rebuild *r, const Kcr__InetSocket *server)
{
	const ProtobufCBinaryData *at = &server->local;
	const Kcr__File *found = NULL;
	union inet_address local;

	if (!inet_address_get(at, &local))
		return NULL;
	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *f = r->context->file[i];

		if (!listens_at(f, *inet_address_port(&local)) ||
		    f->inet_socket->family != server->family)
			continue;
		if (f->inet_socket->local.len == at->len &&
		    !memcmp(f->inet_socket->local.data, at->data, at->len))
			return f;
		found = found ?: f;
	}
	return found;
}

/* All sockets that listen at the port of this one: any of them may get a connection. */
static size_t find_listeners(const struct rebuild *r, const Kcr__File *like,
			     struct pollfd listener[LISTENERS_MAX])
{
	union inet_address a;
	size_t count = 1;

	listener[0] = (struct pollfd){ .fd = r->file_fd[like->id - 1], .events = POLLIN };
	inet_address_get(&like->inet_socket->local, &a);
	for (size_t i = 0; i < r->context->nr_files && count < LISTENERS_MAX; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f != like && r->file_fd[i] >= 0 && listens_at(f, *inet_address_port(&a)))
			listener[count++] = (struct pollfd){ .fd = r->file_fd[i],
							     .events = POLLIN };
	}
	return count;
}

/* A listening socket tells it where others tell what has not been acknowledged. */
uint32_t inet_count_waiting(const struct rebuild *r, const Kcr__File *listening)
{
	struct pollfd listener[LISTENERS_MAX];
	size_t count = find_listeners(r, listening, listener);
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		struct tcp_info info = {};
		socklen_t length = sizeof(info);

		if (!getsockopt(listener[i].fd, IPPROTO_TCP, TCP_INFO, &info, &length))
			sum += info.tcpi_unacked;
	}
	return sum;
}

/* ---- both ends -------------------------------------------------------------------------- */

static int connect_over(struct pollfd *listener, size_t count, const Kcr__InetSocket *client,
			bool old, int out[2])
{
	const struct linger reset = { .l_onoff = 1 };

	out[0] = inet_connect(client, listener[0].fd, old);
	if (out[0] < 0)
		return out[0];
	out[1] = accept_from(listener, count, out[0]);
	if (out[1] < 0) {	/* the program must not accept it later */
		setsockopt(out[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(out[0]);
	}
	return out[1] < 0 ? out[1] : 0;
}

/* Connects through a listening socket for this one connection. */
static int connect_once(const Kcr__InetSocket *client, const Kcr__InetSocket *server, bool anywhere,
			int out[2])
{
	struct pollfd listener = { .fd = listen_once(client, server, anywhere), .events = POLLIN };
	int err;

	if (listener.fd < 0)
		return listener.fd;
	err = connect_over(&listener, 1, client, !anywhere, out);
	close(listener.fd);
	return err;
}

int inet_connect_anywhere(const Kcr__InetSocket *client, const Kcr__InetSocket *server, int out[2])
{
	return connect_once(client, server, true, out);
}

static bool has_moved(int fd, const Kcr__InetSocket *client)
{
	union inet_address now = {}, before;
	socklen_t length = sizeof(now);

	return getpeername(fd, &now.any, &length) || !inet_address_get(&client->remote, &before) ||
	       memcmp(&now, &before, sizeof(now));
}

int inet_connect_pair(const struct rebuild *r, const Kcr__InetSocket *client,
		      const Kcr__InetSocket *server, const Kcr__File *listening, int out[2])
{
	struct pollfd listener[LISTENERS_MAX];
	int err = -EADDRNOTAVAIL;

	if (listening)
		err = connect_over(listener, find_listeners(r, listening, listener), client, true,
				   out);
	if (err)
		err = connect_once(client, server, false, out);
	if (err)
		err = connect_once(client, server, true, out);
	if (err)
		return err;
	if (has_moved(out[0], client))
		report_verbose("a TCP connection has got other addresses than before");
	socket_options_set_accepted(out[1], server->family, server->type, server->protocol,
				    server->option, server->n_option);
	return 0;
}
