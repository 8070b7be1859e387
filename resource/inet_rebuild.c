// SPDX-License-Identifier: GPL-2.0
/*
 * Internet sockets at a restart.  Connections inside the tree are established again by
 * inet_connect.c; those that nobody had accepted wait until inet_waiting.c; those with the outside
 * are inet_hung_up.c's.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_address.h"
#include "resource/inet_connect.h"
#include "resource/inet_raw.h"
#include "resource/option_names.h"
#include "resource/socket.h"

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

/* ---- unconnected, listening and datagram sockets ------------------------------------------ */

int inet_socket_try(const Kcr__InetSocket *s, unsigned int *port)
{
	union inet_address a;
	socklen_t length = inet_address_get(&s->local, &a);
	int fd, err;

	if (s->type != SOCK_STREAM || s->remote.len || s->peer_file_id || s->peer_outside ||
	    s->pending || !length || !*inet_address_port(&a))
		return 0;
	fd = inet_new(s);
	if (fd < 0)
		return fd;
	*port = ntohs(*inet_address_port(&a));
	err = inet_bind_address(fd, &a, length);
	close(fd);
	return err;
}

/* It gets its port when it is connected; the program may have switched the option off since. */
static int bind_without_port(int fd, const union inet_address *a, socklen_t length)
{
	int before = 0, on = 1, err;
	socklen_t size = sizeof(before);

	getsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, &size);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	err = inet_bind_address(fd, a, length);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, sizeof(before));
	return err;
}

static int bind_local(const struct rebuild *r, const Kcr__File *file, int fd)
{
	union inet_address a;
	socklen_t length = inet_address_get(&file->inet_socket->local, &a);
	int err;

	if (!length || (!*inet_address_port(&a) && inet_address_is_any(&a)))
		return 0;
	err = *inet_address_port(&a) ? inet_bind_address(fd, &a, length) :
				       bind_without_port(fd, &a, length);
	/* The address of a connected datagram socket may have come from its route. */
	if (err == -EADDRNOTAVAIL && file->inet_socket->remote.len) {
		if (a.any.sa_family == AF_INET)
			a.v4.sin_addr.s_addr = INADDR_ANY;
		else
			a.v6.sin6_addr = in6addr_any;
		err = inet_bind_address(fd, &a, length);
	}
	if (err == -EADDRINUSE && r->any_port) {
		report_verbose("port %u is in use: a socket has got another", ntohs(*inet_address_port(&a)));
		*inet_address_port(&a) = 0;
		err = inet_bind_address(fd, &a, length);
	}
	if (err == -EADDRINUSE)
		return rebuild_error(file, err, "its port %u is in use: end the program that has "
				     "it", ntohs(*inet_address_port(&a)));
	return err ? rebuild_error(file, err, "its address (port %u) cannot be bound",
				   ntohs(*inet_address_port(&a))) : 0;
}

static int open_single(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	union inet_address remote;
	socklen_t length;
	int fd = inet_new(s), err;

	if (fd < 0)
		return inet_raw_is(s) ? inet_raw_error(file, fd) : rebuild_error(file, fd, "socket");
	inet_raw_shut_out(s, fd);
	inet_bind_begin(r, file, fd);
	err = bind_local(r, file, fd);
	if (!err && s->listening && listen(fd, s->backlog))
		err = rebuild_error(file, -errno, "it cannot listen");
	length = inet_address_get(&s->remote, &remote);
	if (!err && s->type != SOCK_STREAM && length && connect(fd, &remote.any, length))
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

/* All data must fit into the buffers of both sides. */
static int send_all(int fd, const ProtobufCBinaryData *data, const Kcr__File *file)
{
	int usual = socket_value(fd, SO_SNDBUF), locked = socket_value(fd, SO_BUF_LOCK);
	bool grown = false;
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

			if (size > 0 && size < 1 << 28 && socket_grow_buffer(fd, SO_SNDBUF, size))
				grown = true;
			usleep(1000);
		}
	}
	/* Where the lock cannot be taken away again, a small size would stay for ever. */
	if (locked >= 0 && grown) {
		socket_force_buffer(fd, SO_SNDBUF, usual / 2);
		setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, sizeof(locked));
	}
	return at == data->len ? 0 :
	       rebuild_error(file, -ENOBUFS, "cannot fill its queue: raise net.core.wmem_max");
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

void inet_end_again(int fd, const Kcr__InetSocket *s)
{
	if (has_ended(s))
		shutdown(fd, SHUT_WR);
	shut_again(fd, s);
}

int inet_connect_error(const Kcr__File *file, int err, const char *what)
{
	return rebuild_error(file, err, "%s%s", what, err == -ENETUNREACH ?
			     " while the loopback interface is down" : "");
}

static int open_connected(struct rebuild *r, const Kcr__File *a, const Kcr__File *b)
{
	const Kcr__File *client = a, *server = b;
	const Kcr__File *listening = inet_find_listener(r, a->inet_socket);
	int fd[2], err = 0;

	if (listening) {
		client = b;
		server = a;
	} else {
		listening = inet_find_listener(r, b->inet_socket);
	}
	if (listening && r->file_fd[listening->id - 1] < 0)
		err = open_single(r, listening);
	if (err)
		return err;
	err = inet_connect_pair(r, client->inet_socket, server->inet_socket, listening, fd);
	if (err)
		return inet_connect_error(a, err, "it cannot be connected");
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

/* All are connected and filled. */
int inet_socket_deliver(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	int fd = r->file_fd[file->id - 1];

	if (fd < 0)
		return 0;
	socket_options_finish(fd, s->option, s->n_option);
	inet_raw_let_in(s, fd);
	return 0;
}

/* Its listening socket connects it: see inet_waiting.c. */
static int open_unconnected(struct rebuild *r, const Kcr__File *file)
{
	int fd = inet_new(file->inet_socket);

	return fd < 0 ? rebuild_error(file, fd, "socket") : rebuild_put(r, file->id, fd);
}

/* The program reads the error and takes the attempt to connect for failed. */
static int open_refused(struct rebuild *r, const Kcr__File *file)
{
	int fd = inet_connect_refused(file->inet_socket);

	if (fd >= 0)
		return rebuild_put(r, file->id, fd);
	report_warn("%s: its program is not told that it is not connected: %s", file->description,
		    strerror(-fd));
	fd = open_single(r, file);
	if (fd != -EADDRNOTAVAIL && fd != -EADDRINUSE)
		return fd;
	report_clear();
	return open_unconnected(r, file);
}

/* ---- all ------------------------------------------------------------------------------------ */

int inet_socket_check(struct rebuild *r, const Kcr__File *file)
{
	int err = inet_raw_is(file->inet_socket) ? inet_raw_try(file->inet_socket) : 0;

	(void)r;
	return err ? inet_raw_error(file, err) : 0;
}

int inet_socket_open(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	const Kcr__File *peer = find_peer(r, file);

	if ((s->family != AF_INET && s->family != AF_INET6) ||
	    (s->type != SOCK_STREAM && s->type != SOCK_DGRAM && s->type != SOCK_RAW))
		return rebuild_error(file, -EINVAL, "no such type of socket");
	if (s->type == SOCK_STREAM && peer)
		return open_connected(r, file, peer);
	if (s->type == SOCK_STREAM && s->pending)
		return open_unconnected(r, file);
	if (s->type == SOCK_STREAM && s->refused)
		return open_refused(r, file);
	if (s->type == SOCK_STREAM && s->peer_outside)
		return inet_open_hung_up(r, file);
	return open_single(r, file);
}
