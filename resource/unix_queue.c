// SPDX-License-Identifier: GPL-2.0
/*
 * What has been sent to a Unix socket and not been read: read with
 * MSG_PEEK at a moving SO_PEEK_OFF, which is restored, so that the queue
 * stays as it was.  File descriptors in flight (SCM_RIGHTS) cannot be
 * saved.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

struct peeked {
	char *data;
	size_t length;			/* of the message, even if it did not fit */
	struct sockaddr_un sender;
	socklen_t sender_length;
	bool descriptors;
};

/* Peeking gives us copies of descriptors in flight: closes them. */
static bool close_passed(struct msghdr *m)
{
	bool any = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			close(fd);
		}
		any = true;
	}
	return any;
}

/*
 * 1, 0: nothing (more), or -errno.  ECONNRESET, if the peer has closed with unread
 * data, is reported before messages, and once.
 */
static int peek(int fd, size_t room, struct peeked *p)
{
	char control[CMSG_SPACE(253 * sizeof(int)) + 256];
	struct iovec v = { p->data, room };
	struct msghdr m = {
		.msg_name = &p->sender, .msg_namelen = sizeof(p->sender),
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	const int flags = MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
	ssize_t got = recvmsg(fd, &m, flags);

	if (got < 0 && errno == ECONNRESET)
		got = recvmsg(fd, &m, flags);
	if (got < 0)
		return errno == EAGAIN || errno == ECONNRESET ? 0 : -errno;
	p->length = got;
	p->sender_length = m.msg_namelen;
	p->descriptors = close_passed(&m);
	return 1;
}

/* Read no more of a stream than there is: an error that follows is for the program. */
static size_t room_for(const struct file_probe *probe, const Kcr__UnixSocket *u, size_t room)
{
	int unread = 0;

	if (u->type != SOCK_STREAM)
		return room;
	if (ioctl(probe->fd, SIOCINQ, &unread) || unread <= (int)u->stream.len)
		return 0;
	unread -= u->stream.len;
	return (size_t)unread < room ? (size_t)unread : room;
}

static bool set_offset(int fd, int offset)
{
	return !setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
}

static int add_message(Kcr__UnixSocket *u, const struct peeked *p)
{
	Kcr__UnixMessage **more = realloc(u->message, (u->n_message + 1) * sizeof(*more)), *m;
	size_t head = offsetof(struct sockaddr_un, sun_path);
	int err;

	if (more)
		u->message = more;
	m = malloc(sizeof(*m));
	if (!more || !m) {
		free(m);
		return report_errno(-ENOMEM, "saving a socket");
	}
	kcr__unix_message__init(m);
	more[u->n_message++] = m;
	err = file_bytes(&m->data, p->data, p->length);
	if (!err && p->sender_length > head) {
		m->has_sender = true;
		err = file_bytes(&m->sender, p->sender.sun_path, p->sender_length - head);
	}
	return err;
}

static int add_stream(Kcr__UnixSocket *u, const struct peeked *p)
{
	uint8_t *more = realloc(u->stream.data, u->stream.len + p->length + 1);

	if (!more)
		return report_errno(-ENOMEM, "saving a socket");
	memcpy(more + u->stream.len, p->data, p->length);
	u->stream.data = more;
	u->stream.len += p->length;
	u->has_stream = true;
	return 0;
}

static int peek_all(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u,
		    bool moves)
{
	struct peeked p = {};
	size_t room = 1 << 18, wanted;
	int offset = 0, err = 0, more;

	p.data = malloc(room);
	if (!p.data)
		return report_errno(-ENOMEM, "saving a socket");
	while (!err) {
		wanted = room_for(probe, u, room);
		more = wanted ? peek(probe->fd, wanted, &p) : 0;
		if (more <= 0 || (!p.length && u->type == SOCK_STREAM)) {
			err = more < 0 ? file_save_error(probe, more, "cannot read its queue") : 0;
			break;
		}
		if (p.descriptors) {
			err = file_unsupported(t, "a Unix socket with file descriptors in flight");
		} else if (p.length > room && u->type != SOCK_STREAM) {
			free(p.data);
			room = p.length;
			p.data = malloc(room);
			if (!p.data)
				return report_errno(-ENOMEM, "saving a socket");
			if (!moves || !set_offset(probe->fd, offset))
				err = file_save_error(probe, -EIO, "cannot read its queue");
		} else {
			err = u->type == SOCK_STREAM ? add_stream(u, &p) : add_message(u, &p);
			offset += p.length;
		}
		/* An empty message is the end of a connection. */
		if (!moves || (!p.length && u->shut_read))
			break;
	}
	free(p.data);
	return err;
}

int unix_queue_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u)
{
	const char *passed = fdinfo_value(probe->fdinfo, "scm_fds:");
	int before = socket_value(probe->fd, SO_PEEK_OFF), err;
	bool moves;

	if (passed && atoi(passed))
		return file_unsupported(t, "a Unix socket with file descriptors in flight");
	if (file_table_is_dry(t))
		return 0;
	moves = set_offset(probe->fd, 0);
	err = peek_all(t, probe, u, moves);
	if (moves)
		set_offset(probe->fd, before);
	return err;
}

/* ---- rebuild ------------------------------------------------------------------ */

/* All must be sent: enlarges the buffer as long as it takes. */
static int send_all(int fd, const struct msghdr *m, size_t length, const Kcr__File *file)
{
	int usual = socket_value(fd, SO_SNDBUF), size = usual;
	ssize_t sent = sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);

	while (sent < 0 && (errno == EAGAIN || errno == EMSGSIZE) && size < 1 << 28) {
		size *= 2;
		socket_force_buffer(fd, SO_SNDBUF, size);
		sent = sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (size != usual) {
		usual /= 2;
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &usual, sizeof(usual));
	}
	if (sent == (ssize_t)length)
		return 0;
	return rebuild_error(file, sent < 0 ? -errno : -EIO, "cannot fill its queue");
}

int unix_queue_fill(int fd, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	int err = 0;

	for (size_t at = 0; at < u->stream.len && !err; at += 16384) {
		size_t length = u->stream.len - at < 16384 ? u->stream.len - at : 16384;
		struct iovec v = { u->stream.data + at, length };

		err = send_all(fd, &(struct msghdr){ .msg_iov = &v, .msg_iovlen = 1 }, length,
			       file);
	}
	for (size_t i = 0; i < u->n_message && !err; i++)
		err = unix_queue_send(fd, u->message[i], NULL, 0, file);
	return err;
}

int unix_queue_send(int fd, const Kcr__UnixMessage *m, const struct sockaddr_un *to,
		    socklen_t length, const Kcr__File *file)
{
	struct iovec v = { m->data.data, m->data.len };
	struct msghdr message = {
		.msg_name = (void *)to, .msg_namelen = length, .msg_iov = &v, .msg_iovlen = 1,
	};

	return send_all(fd, &message, m->data.len, file);
}
