// SPDX-License-Identifier: GPL-2.0
/*
 * Unix sockets at a restart.  Connections inside the tree are pairs, or, if
 * one side was accepted by a socket that is in the tree too, are established by
 * connecting and accepting, so that both sides have their names.  Connections not
 * yet accepted come last, or they would be accepted instead of others.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/not_accepted.h"
#include "resource/socket.h"

#define ACCEPT_MS	30000

static bool same_name(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	return a->len && a->len == b->len && !memcmp(a->data, b->data, a->len);
}

static const Kcr__File *find_name(const struct rebuild *r, const ProtobufCBinaryData *name,
				  int type, bool listening)
{
	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f->kind_case == KCR__FILE__KIND_UNIX_SOCKET && f->unix_socket->type == type &&
		    f->unix_socket->listening == listening &&
		    same_name(&f->unix_socket->name, name))
			return f;
	}
	return NULL;
}

/* The other end, if it is in the tree and agrees. */
static const Kcr__File *find_peer(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = u->pending ? NULL : context_file(r->context, u->peer_file_id);

	if (!peer || peer->kind_case != KCR__FILE__KIND_UNIX_SOCKET ||
	    peer->unix_socket->type != u->type || peer->unix_socket->peer_file_id != file->id)
		return NULL;
	return peer;
}

/*
 * Datagram sockets that socketpair(2) has made: nothing else connects a socket to one without a
 * name.  At most one of them got one later.
 */
static bool is_datagram_pair(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = find_peer(r, file);

	return u->type == SOCK_DGRAM && peer && peer != file &&
	       (!u->name.len || !peer->unix_socket->name.len);
}

/* ---- making ----------------------------------------------------------------------- */

static int put(struct rebuild *r, const Kcr__File *file, int fd)
{
	socket_options_set(fd, file->unix_socket->option, file->unix_socket->n_option);
	return rebuild_put(r, file->id, fd);
}

/* Is it made by open_single()?  An accepted socket has its listener's name. */
static bool is_single(const Kcr__UnixSocket *u)
{
	return u->listening || u->pending || u->type == SOCK_DGRAM || !u->connected;
}

/* For unix_peer_act(): */
struct socket_step {
	const Kcr__File *file;
	int fd[2];
};

static int listen_again(const struct rebuild *r, void *arg)
{
	const struct socket_step *step = arg;

	(void)r;
	return listen(step->fd[0], step->file->unix_socket->backlog) ? -errno : 0;
}

/* To the listening socket step->file. */
static int connect_to(const struct rebuild *r, void *arg)
{
	const struct socket_step *step = arg;

	return unix_name_connect(r, step->file, step->fd[0]);
}

/* Replaces a pair, whose descriptors stay. */
static int make_pair(const struct rebuild *r, void *arg)
{
	const struct socket_step *step = arg;
	int pair[2], err = 0;

	(void)r;
	if (socketpair(AF_UNIX, step->file->unix_socket->type | SOCK_CLOEXEC, 0, pair))
		return -errno;
	for (int i = 0; i < 2; i++) {
		if (!err && dup3(pair[i], step->fd[i], O_CLOEXEC) < 0)
			err = -errno;
		close(pair[i]);
	}
	return err;
}

/* A pair that was made by the peer of this socket. */
static int new_pair(const struct rebuild *r, const Kcr__File *file, int pair[2])
{
	const Kcr__UnixSocket *u = file->unix_socket;
	struct socket_step step = { .file = file };
	pid_t as;

	if (socketpair(AF_UNIX, u->type | SOCK_CLOEXEC, 0, step.fd))
		return rebuild_error(file, -errno, "socketpair");
	if (u->peer && unix_peer_act(r, u->peer, make_pair, &step, &as))
		report_clear();
	pair[0] = step.fd[0];
	pair[1] = step.fd[1];
	return 0;
}

/* Others whose name this socket has now, and which had it before. */
static int open_unlinked(struct rebuild *r, const Kcr__File *file)
{
	int err = 0;

	for (size_t i = 0; i < r->context->nr_files && !err; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f->kind_case == KCR__FILE__KIND_UNIX_SOCKET && f->unix_socket->unlinked &&
		    is_single(f->unix_socket) && r->file_fd[i] < 0 &&
		    same_name(&f->unix_socket->name, &file->unix_socket->name))
			err = unix_socket_open(r, f);
	}
	return err;
}

/* A new socket with its name. */
static int open_single(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	struct socket_step step = { .file = file };
	int fd, err;
	pid_t as;

	if (u->name.len && !u->unlinked) {
		err = open_unlinked(r, file);
		if (err)
			return err;
	}
	fd = socket(AF_UNIX, u->type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return rebuild_error(file, -errno, "socket");
	err = unix_name_bind(r, file, fd);
	step.fd[0] = fd;
	if (!err && u->listening) {
		err = unix_peer_act(r, u->peer, listen_again, &step, &as);
		if (err)
			rebuild_error(file, err, "it cannot listen");
	}
	if (err) {
		close(fd);
		return err;
	}
	return put(r, file, fd);
}

void unix_socket_shut(const Kcr__File *file, int fd)
{
	const Kcr__UnixSocket *u = file->unix_socket;

	if (u->shut_read && u->shut_write)
		shutdown(fd, SHUT_RDWR);
	else if (u->shut_read || u->shut_write)
		shutdown(fd, u->shut_read ? SHUT_RD : SHUT_WR);
}

/* Standard output of a service is such a socket: cr_restart's replaces it. */
static bool put_stdio(struct rebuild *r, const Kcr__File *file)
{
	static const int order[] = { 1, 2, 0 };

	if (!file->unix_socket->peer_outside || file->unix_socket->stream.len ||
	    file->unix_socket->n_message)
		return false;
	for (int i = 0; i < 3; i++)
		if (rebuild_has_number(r, file->id, order[i]))
			return !rebuild_put_stdio(r, file->id, order[i], O_RDWR);
	return false;
}

/* No peer: the program reads what was sent, then the connection ends. */
static int open_hung_up(struct rebuild *r, const Kcr__File *file)
{
	int pair[2], err;

	if (put_stdio(r, file))
		return 0;
	err = new_pair(r, file, pair);
	if (err)
		return err;
	if (unix_queue_has_rights(file->unix_socket)) {		/* for unix_socket_deliver() */
		err = rebuild_put_content(r, file->id, pair[1]);
	} else {
		err = unix_queue_fill(r, pair[1], file);
		if (!err)
			unix_socket_shut(file, pair[0]);
		close(pair[1]);
	}
	if (err) {
		close(pair[0]);
		return err;
	}
	return put(r, file, pair[0]);
}

/*
 * Accepts the connection that this process has just made; those of strangers are dropped.  If its name
 * has led to another socket meanwhile, none comes.
 */
static int accept_from(int listener, pid_t client)
{
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		struct ucred peer = {};
		socklen_t length = sizeof(peer);
		int fd = poll(&p, 1, ACCEPT_MS) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (fd < 0)
			return p.revents ? -errno : -ETIMEDOUT;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
		    peer.pid == client)
			return fd;
		close(fd);
	}
}

/* `client` connects to a listening socket of the tree, which accepts: `server`. */
static int connect_and_accept(struct rebuild *r, const Kcr__File *client,
			      const Kcr__File *server, const Kcr__File *listener)
{
	struct socket_step step = { .file = listener };
	int fd, err = 0;
	pid_t as;

	if (r->file_fd[listener->id - 1] < 0)
		err = open_single(r, listener);
	if (!err)
		err = open_single(r, client);
	if (err)
		return err;
	step.fd[0] = r->file_fd[client->id - 1];
	err = unix_peer_act(r, server->unix_socket->peer, connect_to, &step, &as);
	if (err)
		return rebuild_error(client, err, "it cannot be connected");
	fd = accept_from(r->file_fd[listener->id - 1], as);
	if (fd < 0)
		return rebuild_error(server, fd, "it cannot be accepted");
	socket_options_set_accepted(fd, AF_UNIX, server->unix_socket->type, 0,
				    server->unix_socket->option, server->unix_socket->n_option);
	return rebuild_put(r, server->id, fd);
}

/* Of a pair: only a datagram socket shows a name of its own. */
static int bind_end(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	int err = 0;

	if (u->type != SOCK_DGRAM || !u->name.len)
		return 0;
	if (!u->unlinked)
		err = open_unlinked(r, file);
	return err ?: unix_name_bind(r, file, r->file_fd[file->id - 1]);
}

static int open_pair(struct rebuild *r, const Kcr__File *a, const Kcr__File *b)
{
	int pair[2], err = new_pair(r, a, pair);

	if (err)
		return err;
	err = put(r, a, pair[0]);
	if (err) {
		close(pair[1]);
		return err;
	}
	return put(r, b, pair[1]) ?: bind_end(r, a) ?: bind_end(r, b);
}

static int fill_both(struct rebuild *r, const Kcr__File *a, const Kcr__File *b)
{
	int err = unix_queue_fill(r, r->file_fd[b->id - 1], a) ?:
		  unix_queue_fill(r, r->file_fd[a->id - 1], b);

	if (err || a->unix_socket->type == SOCK_DGRAM)
		return err;		/* see unix_socket_conclude() */
	unix_socket_shut(a, r->file_fd[a->id - 1]);
	unix_socket_shut(b, r->file_fd[b->id - 1]);
	return 0;
}

/* Both ends of a connection. */
static int open_connected(struct rebuild *r, const Kcr__File *a, const Kcr__File *b)
{
	const Kcr__UnixSocket *u = a->unix_socket, *v = b->unix_socket;
	const Kcr__File *listener;
	int err;

	if ((listener = find_name(r, &u->name, u->type, true)))
		err = connect_and_accept(r, b, a, listener);
	else if ((listener = find_name(r, &v->name, v->type, true)))
		err = connect_and_accept(r, a, b, listener);
	else
		err = open_pair(r, a, b);
	if (err || unix_queue_has_rights(u) || unix_queue_has_rights(v))
		return err;
	return fill_both(r, a, b);
}

int unix_socket_open(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = find_peer(r, file);
	bool named = u->name.len;

	if (u->type != SOCK_STREAM && u->type != SOCK_DGRAM && u->type != SOCK_SEQPACKET)
		return rebuild_error(file, -EINVAL, "no such type of socket");
	if (u->listening || u->pending)
		return open_single(r, file);
	if (u->type == SOCK_DGRAM) {
		if (is_datagram_pair(r, file))
			return open_connected(r, file, peer);
		if (!named && u->n_message)
			return open_hung_up(r, file);
		return open_single(r, file);
	}
	if (!u->connected)
		return open_single(r, file);
	return peer && peer != file ? open_connected(r, file, peer) : open_hung_up(r, file);
}

/* ---- completing --------------------------------------------------------------------- */

/* A socket that sends in the place of one that is not in the tree; -errno, reported. */
static int open_sender(const Kcr__File *file, const Kcr__UnixMessage *m)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return rebuild_error(file, -errno, "socket");
	err = m->sender.len ? unix_name_borrow(&m->sender, fd) : 0;
	if (err)
		report_warn("%s: a datagram that was not read loses the name of its sender, %.*s: %s",
			    file->description, m->sender.data[0] ? (int)m->sender.len : 0,
			    (const char *)m->sender.data, strerror(-err));
	return fd;
}

/* By its sender, if that is in the tree. */
static int send_again(struct rebuild *r, const Kcr__File *file, const Kcr__UnixMessage *m,
		      const struct sockaddr_un *to, socklen_t length)
{
	const Kcr__File *sender = find_name(r, &m->sender, SOCK_DGRAM, false);
	int fd = sender ? r->file_fd[sender->id - 1] : -1, err;
	bool ours = fd < 0;

	if (ours)
		fd = open_sender(file, m);
	err = fd < 0 ? fd : unix_queue_send(r, fd, m, to, length, file);
	if (ours && fd >= 0)
		close(fd);
	return err;
}

static bool is_bound_datagram(const Kcr__File *file)
{
	return file && file->kind_case == KCR__FILE__KIND_UNIX_SOCKET &&
	       file->unix_socket->type == SOCK_DGRAM && file->unix_socket->name.len;
}

/* If its peer is in the tree. */
static bool connect_early(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = context_file(r->context, u->peer_file_id);

	return u->connected && is_bound_datagram(peer) &&
	       !unix_name_connect(r, peer, r->file_fd[file->id - 1]);
}

/*
 * The kernel limits the number of datagrams (-EAGAIN), except of those from the peer that a socket is
 * connected to, which nobody else can send to then.  So it is connected once no more go in.
 */
static int fill_datagrams(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	struct sockaddr_un to;
	socklen_t length;
	int here = unix_name_enter(r, file, &to, &length), err = 0;
	bool early = false;
	size_t sent = 0;

	while (sent < u->n_message && !err) {
		err = send_again(r, file, u->message[sent], &to, length);
		if (err == -EAGAIN && !early && connect_early(r, file)) {
			early = true;
			report_clear();
			err = send_again(r, file, u->message[sent], &to, length);
		}
		if (!err)
			sent++;
	}
	unix_name_leave(here);
	if (err != -EAGAIN && !(early && err == -EPERM))
		return err;
	report_clear();
	report_warn("%s: there is no room for %zu datagrams that were not read: raise "
		    "net.unix.max_dgram_qlen", file->description, u->n_message - sent);
	return 0;
}

static bool has_peer(int fd)
{
	struct sockaddr_un a;
	socklen_t length = sizeof(a);

	return !getpeername(fd, (struct sockaddr *)&a, &length);
}

static int connect_datagrams(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = context_file(r->context, u->peer_file_id);
	int fd = r->file_fd[file->id - 1], err;

	if (!u->connected || !u->peer_name.len || (u->name.len && has_peer(fd)))
		return 0;
	err = is_bound_datagram(peer) ? unix_name_connect(r, peer, fd) :
					unix_name_connect_outside(r, file, fd);
	if (err && !u->peer_outside)
		return rebuild_error(file, err, "it cannot be connected");
	if (err)
		report_warn("%s: it could not be connected again to %s%.*s: %s",
			    file->description, *u->peer_name.data ? "" : "@",
			    (int)u->peer_name.len - !*u->peer_name.data,
			    (const char *)u->peer_name.data + !*u->peer_name.data,
			    strerror(-err));
	return 0;
}

/* A datagram socket that is connected, or shut, takes or sends none that it did before. */
int unix_socket_conclude(struct rebuild *r, const Kcr__File *file)
{
	int err = 0;

	if (file->unix_socket->type != SOCK_DGRAM)
		return 0;
	if (!is_datagram_pair(r, file))
		err = connect_datagrams(r, file);
	if (!err)
		unix_socket_shut(file, r->file_fd[file->id - 1]);
	return err;
}

/* Fills queues with descriptors in them, and what else was not done because of these. */
static int deliver_rights(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = find_peer(r, file);
	int fd = r->file_fd[file->id - 1], err;

	if (fd < 0 || !unix_queue_has_rights(u))
		return 0;
	if (u->type == SOCK_DGRAM && u->name.len && !is_datagram_pair(r, file))
		return fill_datagrams(r, file);
	if (peer && peer != file) {
		/* Once for both. */
		if (peer->id < file->id && unix_queue_has_rights(peer->unix_socket))
			return 0;
		return fill_both(r, file, peer);
	}
	err = unix_queue_fill(r, r->content_fd[file->id - 1], file);
	close(r->content_fd[file->id - 1]);
	r->content_fd[file->id - 1] = -1;
	if (!err)
		unix_socket_shut(file, fd);
	return err;
}

int unix_socket_deliver(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	int fd = r->file_fd[file->id - 1], err = deliver_rights(r, file);

	if (!err && fd >= 0 && !r->borrowed[file->id - 1])
		socket_options_finish(fd, u->option, u->n_option);
	return err;
}

int unix_socket_complete(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *listener;
	int err;

	unix_peer_compare(r, file);
	if (u->type == SOCK_DGRAM)
		return u->name.len && !unix_queue_has_rights(u) && !is_datagram_pair(r, file) ?
		       fill_datagrams(r, file) : 0;
	if (u->listening)
		return unix_waiting_rebuild(r, file);
	if (!u->pending)
		return 0;
	listener = context_file(r->context, u->peer_file_id);
	if (listener && listener->kind_case == KCR__FILE__KIND_CLOSED)
		return 0;
	if (!listener || listener->kind_case != KCR__FILE__KIND_UNIX_SOCKET ||
	    !listener->unix_socket->listening)
		return rebuild_error(file, -EINVAL, "it waits for no listening socket");
	if (listener->unix_socket->n_not_accepted)
		return 0;		/* connected by it; not so in images of 0.1.0 */
	err = unix_name_connect(r, listener, r->file_fd[file->id - 1]);
	return err ? rebuild_error(file, err, "it cannot be connected") : 0;
}
