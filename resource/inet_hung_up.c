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
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_connect.h"
#include "resource/socket.h"

#define ARRIVE_MS	300	/* without progress: there is no room */
#define PAUSE_US	1000000	/* of a helper whose data are not read */

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

static void hang_up(int fd, const Kcr__InetSocket *s)
{
	const struct linger reset = { .l_onoff = 1 };

	if (is_reset(s))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

static int send_later(const Kcr__File *file, int fd, size_t sent)
{
	struct unsent *more = realloc(unsent, (nr_unsent + 1) * sizeof(*more));

	if (!more)
		return report_errno(-ENOMEM, "restoring a socket");
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
static int fill(struct rebuild *r, const Kcr__File *file, const int fd[2])
{
	const Kcr__InetSocket *s = file->inet_socket;
	int usual = socket_value(fd[1], SO_RCVBUF), locked = socket_value(fd[1], SO_BUF_LOCK);
	int needed = room_for(s->receive_queue.len), high;
	bool grown = usual / 2 < needed && socket_grow_buffer(fd[1], SO_RCVBUF, needed);
	size_t sent = 0;

	if (send_ahead(fd, &s->receive_queue, &sent)) {
		inet_end_again(fd[1], s);
		hang_up(fd[0], s);
		if (grown)
			shrink(fd[1], usual, locked);
		return 0;
	}
	inet_end_again(fd[1], s);
	high = fcntl(fd[0], F_DUPFD_CLOEXEC, r->high_fd);
	if (high < 0)
		return rebuild_error(file, -errno, "descriptor");
	close(fd[0]);
	return send_later(file, high, sent);
}

int inet_open_hung_up(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	Kcr__InetSocket nobody = inet_nobody(s->family);
	int fd[2] = { -1, -1 }, err;

	nobody.remote = s->remote;	/* as if by IPv4 if that was */
	err = inet_connect_anywhere(&nobody, &nobody, fd);
	if (err)
		return inet_connect_error(file, err, "it cannot be created");
	socket_options_set_joined(fd[1], s->option, s->n_option);
	err = fill(r, file, fd);
	if (err) {
		close(fd[1]);
		return err;
	}
	return rebuild_put(r, file->id, fd[1]);
}

/* ---- a helper ---------------------------------------------------------------------------- */

/* Until the program has read all, or closed it. */
static void send_rest(int fd, const Kcr__InetSocket *s, size_t sent)
{
	struct pollfd end = { .fd = fd };
	int left;

	signal(SIGPIPE, SIG_DFL);
	fcntl(fd, F_SETFL, 0);
	while (sent < s->receive_queue.len) {
		ssize_t n = send(fd, s->receive_queue.data + sent, s->receive_queue.len - sent,
				 MSG_NOSIGNAL);

		if (n < 0)
			_exit(0);
		sent += n;
	}
	for (int pause = 1000; !ioctl(fd, SIOCOUTQ, &left) && left; pause *= 2) {
		if (pause > PAUSE_US)
			pause = PAUSE_US;
		if (poll(&end, 1, pause / 1000))
			break;
	}
	hang_up(fd, s);
	_exit(0);
}

/* It has no exit signal, and nobody waits for it. */
void inet_socket_finish(struct rebuild *r, const Kcr__File *file)
{
	struct clone_args clone = {};

	(void)r;
	for (size_t i = 0; i < nr_unsent; i++) {
		const struct unsent *u = &unsent[i];

		if (u->file_id != file->id)
			continue;
		if (!syscall(SYS_clone3, &clone, sizeof(clone))) {
			dup2(u->fd, 0);
			close_range(1, ~0u, 0);
			send_rest(0, file->inet_socket, u->sent);
		}
		close(u->fd);
	}
}
