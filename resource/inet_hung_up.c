// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections at a restart whose peer is lost.  The program reads what the peer had sent, and then
 * the end of the stream if it would have, else "connection reset": it must not take a part for the
 * whole.  What its buffer has no room for comes from a helper, as the program reads.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_connect.h"
#include "resource/socket.h"

#define ARRIVE_MS	300	/* without progress: there is no room */
#define PAUSE_MS	200	/* of a helper whose data are not read */
#define DISCARD		(1 << 20)

/* The ends that have yet to send something, for helpers. */
static struct unsent {
	uint32_t file_id;
	int fd;
	size_t sent;
} *unsent;
static size_t nr_unsent;

static bool has_arrived(int fd, size_t length)
{
	int unread;

	return !ioctl(fd, SIOCINQ, &unread) && (size_t)unread >= length;
}

/* Sends as much as there is room for.  Has all arrived?  A reset would discard the rest. */
static bool send_ahead(const int fd[2], const ProtobufCBinaryData *data, size_t *sent)
{
	for (int patience = 0; patience < ARRIVE_MS && !has_arrived(fd[1], data->len);) {
		ssize_t n = send(fd[0], data->data + *sent, data->len - *sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			*sent += n;
			patience = 0;
		} else {
			usleep(1000);
			patience++;
		}
	}
	return has_arrived(fd[1], data->len);
}

/* Is it not to read the end of the stream? */
static bool is_reset(const Kcr__InetSocket *s)
{
	return s->state != TCP_CLOSE_WAIT && s->state != TCP_LAST_ACK && s->state != TCP_CLOSING &&
	       s->state != TCP_TIME_WAIT;
}

/* Whatever ends us, or a helper, before all has been sent: a part is not taken for the whole. */
static void set_reset(int fd, bool reset)
{
	const struct linger linger = { .l_onoff = reset };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* The end comes before a reset that is due to what the program has sent meanwhile. */
static void hang_up(int fd, const Kcr__InetSocket *s)
{
	if (!is_reset(s)) {
		shutdown(fd, SHUT_WR);
		set_reset(fd, false);
	}
	close(fd);
}

/* Of the program's end. */
static void warn_missing(int fd, const Kcr__InetSocket *s, const char *why, const char *error)
{
	int unread = 0;

	ioctl(fd, SIOCINQ, &unread);
	report_warn("a connection to a peer that was not saved is reset and has lost %zu of %zu unread "
		    "bytes, as %s%s: raise net.core.rmem_max", s->receive_queue.len - unread,
		    s->receive_queue.len, why, error);
}

static int send_later(const Kcr__File *file, int fd, size_t sent)
{
	struct unsent *more = realloc(unsent, (nr_unsent + 1) * sizeof(*more));
	const uint64_t rate = INET_HELPER_RATE;

	if (!more)
		return report_errno(-ENOMEM, "restoring a socket");
	setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	unsent = more;
	more[nr_unsent++] = (struct unsent){ .file_id = file->id, .fd = fd, .sent = sent };
	return 0;
}

/*
 * The buffer is as large as before once nothing comes any more.  Where the lock cannot be taken away
 * again, a small size would stay for ever.
 */
static void shrink(int fd, int usual, int locked)
{
	struct pollfd ended = { .fd = fd, .events = POLLRDHUP };

	if (locked < 0)
		return;
	poll(&ended, 1, ARRIVE_MS);
	socket_force_buffer(fd, SO_RCVBUF, usual / 2);
	setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, sizeof(locked));
}

/* The kernel counts more than the data, and keeps the window below the size of the buffer. */
static int room_for(size_t length)
{
	return length < INT_MAX / 4 ? 2 * length : INT_MAX / 2;
}

/* Of a connection, both ends of which are ours. */
static int fill(const Kcr__File *file, const int fd[2])
{
	const Kcr__InetSocket *s = file->inet_socket;
	int usual = socket_value(fd[1], SO_RCVBUF), locked = socket_value(fd[1], SO_BUF_LOCK);
	int needed = room_for(s->receive_queue.len);
	bool grown = usual / 2 < needed && socket_grow_buffer(fd[1], SO_RCVBUF, needed), done;
	size_t sent = 0;
	int err;

	set_reset(fd[0], true);
	done = send_ahead(fd, &s->receive_queue, &sent);
	inet_end_again(fd[1], s);
	if (!done && !socket_options_drop(s->option, s->n_option)) {
		err = send_later(file, fd[0], sent);
		if (err)
			close(fd[0]);
		return err;
	}
	if (done) {
		hang_up(fd[0], s);
	} else {
		warn_missing(fd[1], s, "its options let nothing in that is sent later", "");
		close(fd[0]);
	}
	if (grown)
		shrink(fd[1], usual, locked);
	return 0;
}

int inet_open_hung_up(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	Kcr__InetSocket nobody = inet_nobody(s->family);
	int fd[2] = { -1, -1 }, high, err;

	nobody.remote = s->remote;	/* as if by IPv4 if that was */
	err = inet_connect_anywhere(&nobody, &nobody, fd);
	if (err)
		return inet_connect_error(file, err, "it cannot be created");
	socket_options_set_joined(fd[1], s->option, s->n_option);
	err = rebuild_put(r, file->id, fd[1]);
	high = err ? -1 : fcntl(fd[0], F_DUPFD_CLOEXEC, r->high_fd);
	if (!err && high < 0)
		err = rebuild_error(file, -errno, "descriptor");
	close(fd[0]);
	return err ?: fill(file, (int[]){ high, r->file_fd[file->id - 1] });
}

/* ---- a helper ---------------------------------------------------------------------------- */

/*
 * What the program sends to its lost peer: it would wait for room, or the end would become a reset.
 * False: it has closed the connection.
 */
static bool discard(struct pollfd *p)
{
	ssize_t n;

	do
		n = recv(p->fd, NULL, DISCARD, MSG_TRUNC | MSG_DONTWAIT);
	while (n > 0);
	if (!n)
		p->events &= ~POLLIN;
	return !n || errno == EAGAIN;
}

/* Sends as much as there is room for, and waits for more. */
static bool send_some(struct pollfd *p, const ProtobufCBinaryData *data, size_t *sent)
{
	ssize_t n = send(p->fd, data->data + *sent, data->len - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		*sent += n;
	else if (errno != EAGAIN)
		return false;
	p->events |= POLLOUT;
	return poll(p, 1, -1) >= 0 && discard(p);
}

/* Until the program has read all, or closed it. */
static void send_rest(int fd, const Kcr__InetSocket *s, size_t sent)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int left, pause = 1;

	while (sent < s->receive_queue.len)
		if (!send_some(&p, &s->receive_queue, &sent))
			return;
	p.events &= ~POLLOUT;
	while (!ioctl(fd, SIOCOUTQ, &left) && left) {
		if (poll(&p, 1, pause) < 0 || p.revents & (POLLERR | POLLHUP) || !discard(&p))
			return;
		if (pause < PAUSE_MS)
			pause *= 2;
	}
	hang_up(fd, s);
}

/* In a session of its own, neither the terminal nor a signal to the group of cr_restart reaches it. */
static void help(const struct unsent *u, const Kcr__InetSocket *s)
{
	setsid();
	if (dup2(u->fd, 0))
		_exit(1);
	close_range(1, ~0u, 0);
	send_rest(0, s, u->sent);
	_exit(0);
}

/* It has no exit signal, and nobody waits for it.  Where clone3(2) is not allowed, clone(2) is. */
static void start_helper(const struct unsent *u, const Kcr__InetSocket *s, int program_fd)
{
	sigset_t all, before;
	long pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (!pid)
		help(u, s);
	if (pid < 0)
		warn_missing(program_fd, s, "no process can be created that sends them: ",
			     strerror(errno));
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(u->fd);
}

void inet_socket_finish(struct rebuild *r, const Kcr__File *file)
{
	for (size_t i = 0; i < nr_unsent;) {
		if (unsent[i].file_id != file->id) {
			i++;
			continue;
		}
		start_helper(&unsent[i], file->inet_socket, r->file_fd[file->id - 1]);
		unsent[i] = unsent[--nr_unsent];	/* another attempt has other descriptors */
	}
}
