// SPDX-License-Identifier: GPL-2.0
/*
 * Internet sockets at a restart.  Connections inside the tree are established again,
 * accepted by their listening socket if that is in the tree, with the old
 * addresses if these are available (old connections may linger for a while),
 * else over loopback.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

#define ACCEPT_MS	500	/* for a connection made on this machine */
#define LISTENERS_MAX	64	/* at one port */

static const Kcr__File *find_peer(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	const Kcr__File *peer = context_file(r->context, s->peer_file_id);

	if (!peer || peer == file || peer->kind_case != KCR__FILE__KIND_INET_SOCKET ||
	    peer->inet_socket->protocol != IPPROTO_TCP || s->protocol != IPPROTO_TCP ||
	    peer->inet_socket->peer_file_id != file->id)
		return NULL;
	return peer;
}

/* ---- addresses ------------------------------------------------------------------------ */

static socklen_t to_address(const ProtobufCBinaryData *data, union inet_address *a)
{
	memset(a, 0, sizeof(*a));
	if (data->len > sizeof(*a) || data->len < sizeof(a->v4))
		return 0;
	memcpy(a, data->data, data->len);
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : data->len;
}

static in_port_t *port_of(union inet_address *a)
{
	return a->any.sa_family == AF_INET ? &a->v4.sin_port : &a->v6.sin6_port;
}

static int new_socket(const Kcr__InetSocket *s)
{
	int fd = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);

	if (fd < 0)
		return -errno;
	socket_options_set(fd, s->option, s->n_option);
	return fd;
}

/* Lingering connections must not keep us from the port; restores the option afterwards. */
static int bind_address(int fd, const union inet_address *a, socklen_t length)
{
	int before = socket_value(fd, SO_REUSEADDR), on = 1, err;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	err = bind(fd, &a->any, length) ? -errno : 0;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &before, sizeof(before));
	return err;
}

/* ---- unconnected, listening and datagram sockets ------------------------------------------ */

int inet_socket_try(const Kcr__InetSocket *s, unsigned int *port)
{
	union inet_address a;
	socklen_t length = to_address(&s->local, &a);
	int fd, err;

	if (s->type != SOCK_STREAM || s->remote.len || s->peer_file_id || s->peer_outside ||
	    s->pending || !length || !*port_of(&a))
		return 0;
	fd = new_socket(s);
	if (fd < 0)
		return fd;
	*port = ntohs(*port_of(&a));
	err = bind_address(fd, &a, length);
	close(fd);
	return err;
}

static int bind_local(const struct rebuild *r, const Kcr__File *file, int fd)
{
	union inet_address a;
	socklen_t length = to_address(&file->inet_socket->local, &a);
	int err;

	if (!length || !*port_of(&a))
		return 0;
	err = bind_address(fd, &a, length);
	/* The address of a connected datagram socket may have come from its route. */
	if (err == -EADDRNOTAVAIL && file->inet_socket->remote.len) {
		if (a.any.sa_family == AF_INET)
			a.v4.sin_addr.s_addr = INADDR_ANY;
		else
			a.v6.sin6_addr = in6addr_any;
		err = bind_address(fd, &a, length);
	}
	if (err == -EADDRINUSE && r->any_port) {
		report_verbose("port %u is in use: a socket has got another", ntohs(*port_of(&a)));
		*port_of(&a) = 0;
		err = bind_address(fd, &a, length);
	}
	if (err == -EADDRINUSE)
		return rebuild_error(file, err, "its port %u is in use: end the program that has "
				     "it", ntohs(*port_of(&a)));
	return err ? rebuild_error(file, err, "its address (port %u) cannot be bound",
				   ntohs(*port_of(&a))) : 0;
}

static int open_single(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	union inet_address remote;
	socklen_t length;
	int fd = new_socket(s), err;

	if (fd < 0)
		return rebuild_error(file, fd, "socket");
	inet_bind_begin(r, file, fd);
	err = bind_local(r, file, fd);
	if (!err && s->listening && listen(fd, s->backlog))
		err = rebuild_error(file, -errno, "it cannot listen");
	length = to_address(&s->remote, &remote);
	if (!err && s->type == SOCK_DGRAM && length && connect(fd, &remote.any, length))
		report_warn("a datagram socket could not be connected again: %s", strerror(errno));
	/* Done even where it says ENOTCONN. */
	if (!err && s->has_shut)
		shutdown(fd, s->shut);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

/* ---- connections -------------------------------------------------------------------------- */

/* The listening socket of the tree at this address, else at this port; NULL: none. */
static const Kcr__File *find_listener(const struct rebuild *r, const Kcr__InetSocket *server)
{
	const ProtobufCBinaryData *at = &server->local;
	const Kcr__File *found = NULL;
	union inet_address local, a;

	if (!to_address(&server->local, &local))
		return NULL;
	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f->kind_case == KCR__FILE__KIND_INET_SOCKET && f->inet_socket->listening &&
		    f->inet_socket->family == server->family &&
		    to_address(&f->inet_socket->local, &a) && *port_of(&a) == *port_of(&local)) {
			if (f->inet_socket->local.len == at->len &&
			    !memcmp(f->inet_socket->local.data, at->data, at->len))
				return f;
			found = found ?: f;
		}
	}
	return found;
}

/* Both ends of a connection in a VRF belong to it. */
static void set_device(int fd, const Kcr__InetSocket *s)
{
	for (size_t i = 0; i < s->n_option; i++)
		if (s->option[i]->level == SOL_SOCKET && s->option[i]->name == SO_BINDTODEVICE)
			socket_options_set(fd, &s->option[i], 1);
}

/* A listening socket for one connection: at the old address or anywhere on loopback. */
static int listen_once(const Kcr__InetSocket *server, bool anywhere)
{
	int fd = socket(server->family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), err = 0;
	union inet_address a;
	socklen_t length = to_address(&server->local, &a);

	if (fd < 0)
		return -errno;
	if (anywhere || !length) {
		memset(&a, 0, sizeof(a));
		a.any.sa_family = server->family;
		length = server->family == AF_INET ? sizeof(a.v4) : sizeof(a.v6);
		if (server->family == AF_INET)
			a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		else
			a.v6.sin6_addr = in6addr_loopback;
	} else {
		set_device(fd, server);
	}
	err = bind_address(fd, &a, length);
	if (!err && listen(fd, 1))
		err = -errno;
	if (err)
		close(fd);
	return err ?: fd;
}

/* Connects to where `listener` listens, from the old address if that is free. */
static int connect_to(const Kcr__InetSocket *client, int listener, const union inet_address *to,
		      socklen_t to_length)
{
	union inet_address from, at;
	socklen_t length = to_address(&client->local, &from), at_length = sizeof(at);
	int fd = -1, err = -EADDRNOTAVAIL;

	if (!to) {
		if (getsockname(listener, &at.any, &at_length))
			return -errno;
		to = &at;
		to_length = at_length;
	}
	for (int attempt = length ? 0 : 1; attempt < 2; attempt++) {
		fd = new_socket(client);
		if (fd < 0)
			return fd;
		err = attempt ? 0 : bind_address(fd, &from, length);
		if (!err && connect(fd, &to->any, to_length))
			err = -errno;
		if (!err)
			return fd;
		close(fd);
	}
	return err;
}

/* Is `fd`, just accepted, the other end of `client`? */
static bool is_end_of(int fd, int client)
{
	union inet_address theirs = {}, ours = {};
	socklen_t length = sizeof(theirs), our_length = sizeof(ours);

	return getpeername(fd, &theirs.any, &length) ||
	       getsockname(client, &ours.any, &our_length) ||
	       *port_of(&theirs) == *port_of(&ours);
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

/* All sockets that listen at the port of this one: any of them may get a connection. */
static size_t find_listeners(const struct rebuild *r, const Kcr__File *like,
			     struct pollfd listener[LISTENERS_MAX])
{
	union inet_address a, b;
	size_t count = 1;

	listener[0] = (struct pollfd){ .fd = r->file_fd[like->id - 1], .events = POLLIN };
	to_address(&like->inet_socket->local, &a);
	for (size_t i = 0; i < r->context->nr_files && count < LISTENERS_MAX; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f != like && f->kind_case == KCR__FILE__KIND_INET_SOCKET &&
		    f->inet_socket->listening && r->file_fd[i] >= 0 &&
		    to_address(&f->inet_socket->local, &b) && *port_of(&a) == *port_of(&b))
			listener[count++] = (struct pollfd){ .fd = r->file_fd[i],
							     .events = POLLIN };
	}
	return count;
}

static int connect_over(struct pollfd *listener, size_t count, const Kcr__InetSocket *client,
			const union inet_address *to, socklen_t length, int out[2])
{
	const struct linger reset = { .l_onoff = 1 };

	out[0] = connect_to(client, listener[0].fd, to, length);
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
static int connect_once(const Kcr__InetSocket *client, const Kcr__InetSocket *server,
			const union inet_address *to, socklen_t length, int out[2])
{
	struct pollfd listener = { .fd = listen_once(server, !to), .events = POLLIN };
	int err;

	if (listener.fd < 0)
		return listener.fd;
	err = connect_over(&listener, 1, client, to, length, out);
	close(listener.fd);
	return err;
}

/* client and server: descriptors of a connection of these two. */
static int make_connection(struct rebuild *r, const Kcr__InetSocket *client,
			   const Kcr__InetSocket *server, int out[2])
{
	const Kcr__File *listening = find_listener(r, server);
	struct pollfd listener[LISTENERS_MAX];
	union inet_address to;
	socklen_t length = to_address(&client->remote, &to);
	int err = listening && r->file_fd[listening->id - 1] < 0 ? open_single(r, listening) : 0;

	if (err)
		return err;
	err = -EADDRNOTAVAIL;
	if (listening && length)
		err = connect_over(listener, find_listeners(r, listening, listener), client, &to,
				   length, out);
	if (err && length)
		err = connect_once(client, server, &to, length, out);
	if (err) {
		err = connect_once(client, server, NULL, 0, out);
		report_verbose("a TCP connection has got other addresses than before");
	}
	if (!err)
		socket_options_set(out[1], server->option, server->n_option);
	return err;
}

/* All data must fit into the buffers of both sides. */
static int send_all(int fd, const ProtobufCBinaryData *data, const Kcr__File *file)
{
	size_t at = 0;

	for (int patience = 0; at < data->len && patience < 200; patience++) {
		ssize_t sent = send(fd, data->data + at, data->len - at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0) {
			at += sent;
			patience = 0;
		} else if (errno != EAGAIN) {
			return rebuild_error(file, -errno, "cannot fill its queue");
		} else {
			int size = socket_value(fd, SO_SNDBUF);

			if (size > 0 && size < 1 << 28)
				socket_force_buffer(fd, SO_SNDBUF, size);
			usleep(1000);
		}
	}
	return at == data->len ? 0 : rebuild_error(file, -ENOBUFS, "cannot fill its queue");
}

/* Had this side ended its direction of the connection? */
static bool has_ended(const Kcr__InetSocket *s)
{
	return s->state == TCP_FIN_WAIT1 || s->state == TCP_FIN_WAIT2 || s->state == TCP_CLOSING ||
	       s->state == TCP_LAST_ACK || s->state == TCP_TIME_WAIT;
}

/* Sends what the other side had not read, and the end of the stream if it had ended. */
static int fill(int fd, const Kcr__File *from)
{
	int err = send_all(fd, &from->inet_socket->send_queue, from);

	if (!err && has_ended(from->inet_socket))
		shutdown(fd, SHUT_WR);
	return err;
}

/* Ends what the program had ended of a connection that is complete otherwise. */
static void shut_again(int fd, const Kcr__InetSocket *s)
{
	if (s->has_shut)
		shutdown(fd, s->shut);
}

static int open_connected(struct rebuild *r, const Kcr__File *a, const Kcr__File *b)
{
	const Kcr__File *client = a, *server = b;
	int fd[2], err;

	if (find_listener(r, a->inet_socket)) {
		client = b;
		server = a;
	}
	err = make_connection(r, client->inet_socket, server->inet_socket, fd);
	if (err)
		return rebuild_error(a, err, "it cannot be connected");
	err = rebuild_put(r, client->id, fd[0]) ?: rebuild_put(r, server->id, fd[1]);
	if (!err)
		err = fill(r->file_fd[client->id - 1], client);
	if (!err)
		err = fill(r->file_fd[server->id - 1], server);
	if (!err) {
		shut_again(r->file_fd[client->id - 1], client->inet_socket);
		shut_again(r->file_fd[server->id - 1], server->inet_socket);
	}
	return err;
}

/*
 * The peer cannot be restored.  The program reads what the peer had sent, and then
 * the end of the stream if it would have, else "connection reset": it must not take
 * a part for the whole.
 */
static int open_hung_up(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	Kcr__InetSocket nobody = KCR__INET_SOCKET__INIT;
	struct linger reset = { .l_onoff = 1 };
	int fd[2] = { -1, -1 }, unsent, err;

	nobody.family = s->family;
	nobody.type = SOCK_STREAM;
	nobody.protocol = IPPROTO_TCP;
	err = connect_once(&nobody, &nobody, NULL, 0, fd);
	if (err)
		return rebuild_error(file, err, "it cannot be created");
	socket_options_set_joined(fd[1], s->option, s->n_option);
	err = send_all(fd[0], &s->receive_queue, file);
	for (int i = 0; !err && i < 1000 && !ioctl(fd[0], SIOCOUTQ, &unsent) && unsent; i++)
		usleep(1000);	/* a reset discards what has not arrived */
	if (!err && has_ended(s))
		shutdown(fd[1], SHUT_WR);
	shut_again(fd[1], s);
	if (!err && s->state != TCP_CLOSE_WAIT && s->state != TCP_LAST_ACK &&
	    s->state != TCP_CLOSING && s->state != TCP_TIME_WAIT)
		setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd[0]);
	if (err) {
		close(fd[1]);
		return err;
	}
	return rebuild_put(r, file->id, fd[1]);
}

/* ---- connections not accepted yet ---------------------------------------------------------- */

/* Its listening socket connects it: see inet_socket_complete(). */
static int put_unconnected(struct rebuild *r, const Kcr__File *file)
{
	int fd = new_socket(file->inet_socket);

	return fd < 0 ? rebuild_error(file, fd, "socket") : rebuild_put(r, file->id, fd);
}

static bool is_connected(int fd)
{
	uint8_t end[INET_END];

	return inet_end_get(fd, true, end);
}

static int connect_client(struct rebuild *r, int listener, const Kcr__File *client)
{
	const Kcr__InetSocket *s = client->inet_socket;
	union inet_address to;
	socklen_t length = to_address(&s->remote, &to);
	int fd;

	if (is_connected(r->file_fd[client->id - 1]))
		return 0;
	fd = length ? connect_to(s, listener, &to, length) : -EADDRNOTAVAIL;
	if (fd < 0)
		fd = connect_to(s, listener, NULL, 0);
	if (fd < 0)
		return fd;
	if (has_ended(s))
		shutdown(fd, SHUT_WR);
	shut_again(fd, s);
	return rebuild_put(r, client->id, fd);
}

/* A client that ends the connection at once, or resets it, as one that is gone has or would. */
static int connect_nobody(int family, int listener, bool ended)
{
	const struct linger reset = { .l_onoff = 1 };
	Kcr__InetSocket nobody = KCR__INET_SOCKET__INIT;
	int fd;

	nobody.family = family;
	nobody.type = SOCK_STREAM;
	nobody.protocol = IPPROTO_TCP;
	fd = connect_to(&nobody, listener, NULL, 0);
	if (fd < 0)
		return fd;
	if (!ended)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return 0;
}

/* All are bound.  All other connections have been made: nobody accepts these instead. */
int inet_socket_complete(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	int listener = r->file_fd[file->id - 1], err = 0;

	inet_bind_end(r, file);
	for (size_t i = 0; i < s->n_not_accepted && !err && s->listening; i++) {
		const Kcr__NotAccepted *one = s->not_accepted[i];
		const Kcr__File *client = context_file(r->context, one->file_id);

		if (!client)
			err = connect_nobody(s->family, listener, one->ended);
		else if (client->kind_case == KCR__FILE__KIND_INET_SOCKET &&
			 client->inet_socket->pending && r->file_fd[client->id - 1] >= 0)
			err = connect_client(r, listener, client);
	}
	return err ? rebuild_error(file, err, "a client cannot connect to it") : 0;
}

/* All are connected and filled. */
int inet_socket_deliver(struct rebuild *r, const Kcr__File *file)
{
	int fd = r->file_fd[file->id - 1];

	if (fd >= 0)
		socket_options_finish(fd, file->inet_socket->option, file->inet_socket->n_option);
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------ */

int inet_socket_open(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	const Kcr__File *peer = find_peer(r, file);

	if ((s->family != AF_INET && s->family != AF_INET6) ||
	    (s->type != SOCK_STREAM && s->type != SOCK_DGRAM))
		return rebuild_error(file, -EINVAL, "no such type of socket");
	if (s->type == SOCK_STREAM && peer)
		return open_connected(r, file, peer);
	if (s->type == SOCK_STREAM && s->pending)
		return put_unconnected(r, file);
	if (s->type == SOCK_STREAM && s->peer_outside)
		return open_hung_up(r, file);
	return open_single(r, file);
}
