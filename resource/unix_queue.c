// SPDX-License-Identifier: GPL-2.0
/*
 * What has been sent to a Unix socket and not been read: read with
 * MSG_PEEK at a moving SO_PEEK_OFF, which is restored, so that the queue
 * stays as it was.  Peeking gives us copies of descriptors in flight (SCM_RIGHTS), which are
 * registered like those of a process.  In a stream they come with one of its bytes.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/apart.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/option_names.h"
#include "resource/socket.h"
#include "resource/socket_hidden.h"
#include "resource/unix_diag.h"

#define PASSED_MAX	253	/* in a message */
#define PIECE		16384	/* of a stream, which is sent as a whole or not at all */

struct peeked {
	char *data;
	size_t length;			/* of the message, even if it did not fit */
	struct sockaddr_un sender;
	socklen_t sender_length;
	int fd[PASSED_MAX];		/* descriptors that came with it, ours */
	size_t nr_fds;
	bool truncated;			/* … and those that we could not take */
	struct ucred from;
	bool has_from;			/* only if the receiver has SO_PASSCRED, see tell_senders() */
};

static void take_passed(struct msghdr *m, struct peeked *p)
{
	p->nr_fds = 0;
	p->has_from = false;
	p->truncated = m->msg_flags & MSG_CTRUNC;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_PIDFD)
			close(*(const int *)CMSG_DATA(c));
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&p->from, CMSG_DATA(c), sizeof(p->from));
			p->has_from = true;
		}
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		p->nr_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(p->fd, CMSG_DATA(c), p->nr_fds * sizeof(int));
	}
}

static void close_passed(struct peeked *p)
{
	for (size_t i = 0; i < p->nr_fds; i++)
		close(p->fd[i]);
	p->nr_fds = 0;
}

/*
 * 1, 0: nothing (more), or -errno.  ECONNRESET, if the peer has closed with unread
 * data, is reported before messages, and once.
 */
static int peek(int fd, size_t room, struct peeked *p)
{
	char control[CMSG_SPACE(PASSED_MAX * sizeof(int)) + 256];
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
	take_passed(&m, p);
	return 1;
}

/* Read no more of a stream than there is: an error that follows is for the program. */
static size_t room_for(const struct file_probe *probe, const Kcr__UnixSocket *u, int offset,
		       size_t room)
{
	int unread = 0;

	if (u->type != SOCK_STREAM)
		return room;
	if (ioctl(probe->fd, SIOCINQ, &unread) || unread <= offset)
		return 0;
	unread -= offset;
	return (size_t)unread < room ? (size_t)unread : room;
}

static bool set_offset(int fd, int offset)
{
	return !setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
}

/* Registers what came with a message; takes the descriptors. */
static int add_passed(struct file_table *t, const struct file_probe *probe, Kcr__UnixMessage *m,
		      struct peeked *p)
{
	size_t count = p->nr_fds;
	int err = 0;

	m->file_id = count ? calloc(count, sizeof(*m->file_id)) : NULL;
	if (count && !m->file_id)
		return report_errno(-ENOMEM, "saving a socket");
	p->nr_fds = 0;
	for (size_t i = 0; i < count; i++) {
		if (err)
			close(p->fd[i]);
		else
			err = file_table_add_passed(t, p->fd[i], probe, &m->file_id[i]);
	}
	m->n_file_id = count;
	return err;
}

static int add_from(Kcr__UnixMessage *m, const struct ucred *from)
{
	m->from = malloc(sizeof(*m->from));
	if (!m->from)
		return report_errno(-ENOMEM, "saving a socket");
	kcr__peer_credentials__init(m->from);
	m->from->pid = from->pid;
	m->from->uid = from->uid;
	m->from->gid = from->gid;
	return 0;
}

static int add_message(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u,
		       struct peeked *p)
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
	if (!err && u->type != SOCK_STREAM && p->sender_length > head) {
		m->has_sender = true;
		err = file_bytes(&m->sender, p->sender.sun_path, p->sender_length - head);
	}
	if (!err && p->has_from)
		err = add_from(m, &p->from);
	return err ?: add_passed(t, probe, m, p);
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

/*
 * Of `length` bytes of a stream at `offset`, the last of which came with descriptors: how
 * many come before those that bring them?  Peeking shows the descriptors even if it ends in
 * front of these.  But the kernel copies what was sent in one piece as a whole or, if
 * the memory is not there, not at all: so the last byte has no memory.  -errno, reported.
 */
static ssize_t bytes_before(const struct file_probe *probe, int offset, size_t length)
{
	size_t page = sysconf(_SC_PAGESIZE), size = (length + page - 1) / page * page;
	char *area = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	ssize_t before;

	if (area == MAP_FAILED || mprotect(area + size, page, PROT_NONE))
		return report_errno(-ENOMEM, "saving a socket");
	set_offset(probe->fd, offset);
	before = recv(probe->fd, area + size - (length - 1), length, MSG_PEEK | MSG_DONTWAIT);
	if (before < 0)
		before = errno == EFAULT ? 0 : file_save_error(probe, -errno,
							       "cannot read its queue");
	munmap(area, size + page);
	set_offset(probe->fd, offset);
	return before;
}

/*
 * Adds what was peeked at *offset.  If some of a stream comes before what brings
 * descriptors, only *limit is set: to so many bytes, which are to be peeked and added first.
 */
static int add(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u,
	       struct peeked *p, int *offset, size_t *limit)
{
	bool plain = *limit != SIZE_MAX;
	ssize_t before;
	int err;

	*limit = SIZE_MAX;
	if (plain)
		close_passed(p);	/* of what follows */
	else if (p->truncated)
		return file_too_many(probe->pid);
	if (u->type == SOCK_STREAM && p->nr_fds) {
		before = bytes_before(probe, *offset, p->length);
		if (before < 0)
			return before;
		if (before) {
			*limit = before;
			return 0;
		}
		set_offset(probe->fd, *offset + p->length);
	}
	if (u->type == SOCK_STREAM && !p->nr_fds && !p->has_from && !u->n_message)
		err = add_stream(u, p);
	else
		err = add_message(t, probe, u, p);
	*offset += p->length;
	return err;
}

/*
 * Was nothing received as the other end will send nothing more?  Else it was an empty message:
 * others of a SOCK_SEQPACKET socket, of which the kernel knows the sum, may come behind it.
 */
static bool is_end(const struct file_probe *probe, const Kcr__UnixSocket *u, const struct peeked *p,
		   int offset)
{
	int waiting;

	if (p->length || p->nr_fds)
		return false;
	if (u->type == SOCK_STREAM)
		return true;
	return u->shut_read && (u->type != SOCK_SEQPACKET || ioctl(probe->fd, SIOCINQ, &waiting) ||
				waiting <= offset);
}

static int peek_all(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u,
		    bool moves)
{
	struct peeked p = {};
	size_t room = 1 << 18, limit = SIZE_MAX, wanted;
	int offset = 0, err = 0, more;

	p.data = malloc(room);
	if (!p.data)
		return report_errno(-ENOMEM, "saving a socket");
	while (!err) {
		wanted = room_for(probe, u, offset, room < limit ? room : limit);
		more = wanted ? peek(probe->fd, wanted, &p) : 0;
		if (more <= 0 || is_end(probe, u, &p, offset)) {
			err = more < 0 ? file_save_error(probe, more, "cannot read its queue") : 0;
			break;
		}
		if (p.length > room && u->type != SOCK_STREAM) {
			close_passed(&p);
			free(p.data);
			room = p.length;
			p.data = malloc(room);
			if (!p.data)
				return report_errno(-ENOMEM, "saving a socket");
			if (!moves || !set_offset(probe->fd, offset))
				err = file_save_error(probe, -EIO, "cannot read its queue");
		} else {
			err = add(t, probe, u, &p, &offset, &limit);
			close_passed(&p);
		}
		if (!moves)
			break;
	}
	free(p.data);
	return err;
}

/* A look at messages takes the error of a socket away; a look at a stream does not. */
static void warn_error(const struct file_probe *probe, bool looks)
{
	struct pollfd p = { .fd = probe->fd };

	if (poll(&p, 1, 0) > 0 && p.revents & POLLERR)
		report_warn("process %d: an error of a Unix socket (its peer has gone without reading "
			    "all) is not saved%s (%s)", probe->pid,
			    looks ? ", nor told to the program that goes on" : "", probe->link);
}

/*
 * The kernel shows an empty message at SO_PEEK_OFF once only: those of an earlier look, by the
 * program or for another checkpoint, would be left out.
 */
static int check_queue(struct file_table *t, const struct file_probe *probe, bool *is_empty)
{
	struct kcr_socket hidden;
	int err = socket_hidden_get(t, probe, &hidden);

	*is_empty = hidden.state & KCR_SOCKET_IDLE;
	if (!err && hidden.state & KCR_SOCKET_PEEKED)
		return file_unsupported(t, "a Unix socket with an empty message that the program or an "
					"earlier checkpoint has looked at: it can be saved once the "
					"message has been read");
	return err;
}

/* With SO_PASSPIDFD alone (Linux 6.5) the kernel gives a pidfd, and knows the rest. */
static bool hides_senders(int fd)
{
	return socket_value(fd, SO_PASSPIDFD) == 1 && !socket_value(fd, SO_PASSCRED);
}

static void tell_senders(int fd, int tell)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &tell, sizeof(tell));
}

/* What a look changes of a socket for a moment. */
struct look {
	int fd, offset;
	bool tells;
};

static void give_back(void *arg)
{
	const struct look *look = arg;

	if (look->tells)
		tell_senders(look->fd, false);
	set_offset(look->fd, look->offset);
}

/* Whatever is there is read once: what collect() has read need not show again. */
static int read_queue(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u)
{
	struct look look = {
		.fd = probe->fd, .offset = socket_value(probe->fd, SO_PEEK_OFF),
		.tells = hides_senders(probe->fd),
	};
	bool packets = u->type != SOCK_STREAM, is_empty = false;
	struct apart_guard guard;
	int err;

	err = packets ? check_queue(t, probe, &is_empty) : 0;
	if (err || file_table_is_dry(t))
		return err;
	warn_error(probe, packets && !is_empty);
	if (packets ? is_empty : !room_for(probe, u, 0, 1))
		return 0;
	guard = apart_guard(give_back, &look);
	if (look.tells)
		tell_senders(probe->fd, true);
	err = peek_all(t, probe, u, set_offset(probe->fd, 0));
	give_back(&look);
	apart_unguard(&guard);
	return err;
}

int unix_queue_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u)
{
	Kcr__UnixSocket *unread = *file_table_unread(probe);

	if (!unread)
		return read_queue(t, probe, u);
	u->message = unread->message;
	u->n_message = unread->n_message;
	u->has_stream = unread->has_stream;
	u->stream = unread->stream;
	unread->message = NULL;
	unread->n_message = 0;
	unread->stream = (ProtobufCBinaryData){};
	return 0;
}

int unix_queue_collect(struct file_table *t, const struct file_probe *probe)
{
	const char *passed = fdinfo_value(probe->fdinfo, "scm_fds:");
	Kcr__UnixSocket *unread;
	struct unix_state state;
	int err;

	if (!passed || !atoi(passed) || socket_value(probe->fd, SO_ACCEPTCONN) == 1 ||
	    unix_diag(t, probe->st.st_ino, &state))
		return 0;		/* save() says what is wrong with it */
	unread = malloc(sizeof(*unread));
	if (!unread)
		return report_errno(-ENOMEM, "saving a socket");
	kcr__unix_socket__init(unread);
	unread->type = socket_value(probe->fd, SO_TYPE);
	unread->shut_read = state.shutdown & 1;
	err = read_queue(t, probe, unread);
	if (!err) {
		*file_table_unread(probe) = unread;
		return 0;
	}
	kcr__unix_socket__free_unpacked(unread, NULL);
	return err == -EOPNOTSUPP ? 0 : err;	/* likewise */
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Then no buffer of the sender helps. */
static bool receiver_is_full(int fd)
{
	int queued = 0;

	return !ioctl(fd, SIOCOUTQ, &queued) && queued < socket_value(fd, SO_SNDBUF);
}

/* All must be sent: enlarges the buffer as long as it takes. */
static int send_all(int fd, const struct msghdr *m, size_t length, const Kcr__File *file)
{
	int usual = socket_value(fd, SO_SNDBUF), size = usual;
	ssize_t sent;
	int err;

	/* Or a part of a stream is sent, if the program has made the buffer small. */
	if (usual > 0 && length > (size_t)usual / 4 && socket_value(fd, SO_TYPE) == SOCK_STREAM) {
		size = 4 * length;
		socket_force_buffer(fd, SO_SNDBUF, size);
	}
	sent = sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && size < 1 << 28 &&
	       (errno == EMSGSIZE || (errno == EAGAIN && !receiver_is_full(fd)))) {
		size *= 2;
		socket_force_buffer(fd, SO_SNDBUF, size);
		sent = sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	err = sent == (ssize_t)length ? 0 : sent < 0 ? -errno : -EIO;
	if (err == -EAGAIN && !receiver_is_full(fd))
		err = -ENOBUFS;
	if (size != usual) {
		usual /= 2;
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &usual, sizeof(usual));
	}
	return err ? rebuild_error(file, err, "cannot fill its queue") : 0;
}

bool unix_queue_has_rights(const Kcr__UnixSocket *u)
{
	for (size_t i = 0; i < u->n_message; i++)
		if (u->message[i]->n_file_id)
			return true;
	return false;
}

int unix_queue_fill(const struct rebuild *r, int fd, const Kcr__File *file)
{
	const Kcr__Process *p = identity_is_owner() ? rebuild_first_owner(r, file->id) : NULL;
	const Kcr__UnixSocket *u = file->unix_socket;
	int err = p ? identity_show(p->credentials) : 0;

	for (size_t at = 0; at < u->stream.len && !err; at += PIECE) {
		size_t length = u->stream.len - at < PIECE ? u->stream.len - at : PIECE;
		struct iovec v = { u->stream.data + at, length };

		err = send_all(fd, &(struct msghdr){ .msg_iov = &v, .msg_iovlen = 1 }, length,
			       file);
	}
	for (size_t i = 0; i < u->n_message && !err; i++)
		err = unix_queue_send(r, fd, u->message[i], NULL, 0, file);
	if (p)
		identity_show_own();
	return err;
}

/* Who is said to send it: the process that sends it now, with the saved IDs. */
static struct cmsghdr *put_from(const Kcr__UnixMessage *m, struct msghdr *message)
{
	struct ucred from = { .pid = getpid(), .uid = m->from->uid, .gid = m->from->gid };
	struct cmsghdr *c = CMSG_FIRSTHDR(message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof(from));
	memcpy(CMSG_DATA(c), &from, sizeof(from));
	return CMSG_NXTHDR(message, c);
}

/* The descriptors of a message; those restored as closed are left out.  Returns their size. */
static size_t put_rights(const struct rebuild *r, const Kcr__UnixMessage *m, struct cmsghdr *c)
{
	int *fd = (int *)CMSG_DATA(c);
	size_t count = 0;

	for (size_t i = 0; i < m->n_file_id && count < PASSED_MAX; i++)
		if (context_file(r->context, m->file_id[i]) && r->file_fd[m->file_id[i] - 1] >= 0)
			fd[count++] = r->file_fd[m->file_id[i] - 1];
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(*fd));
	return count ? CMSG_SPACE(count * sizeof(*fd)) : 0;
}

/* For unix_peer_act(): */
struct send_step {
	const Kcr__File *file;
	const Kcr__UnixMessage *m;
	const struct sockaddr_un *to;
	socklen_t length;
	int fd;
};

/* `size` bytes at `at` of a message; its descriptors come with the first. */
static int send_piece(const struct rebuild *r, const struct send_step *step, bool tells_from,
		      size_t at, size_t size)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(PASSED_MAX * sizeof(int)) +
					      CMSG_SPACE(sizeof(struct ucred))] = {};
	struct iovec v = { step->m->data.data + at, size };
	struct msghdr message = {
		.msg_name = (void *)step->to, .msg_namelen = step->length,
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	size_t length = 0;

	if (tells_from) {
		c = put_from(step->m, &message);
		length = CMSG_SPACE(sizeof(struct ucred));
	}
	message.msg_controllen = length + (at ? 0 : put_rights(r, step->m, c));
	return send_all(step->fd, &message, size, step->file);
}

static int send_one(const struct rebuild *r, const struct send_step *step, bool tells_from)
{
	size_t all = step->m->data.len, at = 0;
	bool stream = step->file->unix_socket->type == SOCK_STREAM;
	int err;

	do {
		size_t size = stream && all - at > PIECE ? PIECE : all - at;

		err = send_piece(r, step, tells_from, at, size);
		at += size;
	} while (!err && at < all);
	return err;
}

/* Without permission to be that user, the message is the caller's. */
static int send_step(const struct rebuild *r, void *arg)
{
	const struct send_step *step = arg;
	int err = send_one(r, step, step->m->from);

	if (err != -EPERM || !step->m->from)
		return err;
	report_clear();
	return send_one(r, step, false);
}

int unix_queue_send(const struct rebuild *r, int fd, const Kcr__UnixMessage *m,
		    const struct sockaddr_un *to, socklen_t length, const Kcr__File *file)
{
	struct send_step step = { .file = file, .m = m, .to = to, .length = length, .fd = fd };
	pid_t as;

	/* By a name, which may lead elsewhere: the receiver is not to believe that root has sent it. */
	if (m->from || (to && identity_is_owner()))
		return unix_peer_act(r, m->from, send_step, &step, &as);
	return send_one(r, &step, false);
}
