// SPDX-License-Identifier: GPL-2.0
/*
 * What is in a TCP connection.  Unread data is looked at with MSG_PEEK.  Data
 * that the receiver had no room for waits at the sender, where only repair
 * mode (CAP_NET_ADMIN) shows it; sequence numbers tell how much of it that is.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

#ifndef TCP_REPAIR_OFF_NO_WP
#define TCP_REPAIR_OFF_NO_WP	-1
#endif

enum { QUEUE_RECEIVE = 1, QUEUE_SEND = 2 };

static int set(int fd, int name, int value)
{
	return setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)) ? -errno : 0;
}

int tcp_receive_queue_save(const struct file_probe *probe, Kcr__InetSocket *s)
{
	int unread = 0, err = 0;
	ssize_t got;
	void *data;

	if (ioctl(probe->fd, SIOCINQ, &unread) || unread <= 0)
		return 0;
	data = malloc(unread);
	if (!data)
		return report_errno(-ENOMEM, "saving a socket");
	got = recv(probe->fd, data, unread, MSG_PEEK | MSG_DONTWAIT);
	if (got > 0) {
		s->has_receive_queue = true;
		err = file_bytes(&s->receive_queue, data, got);
	} else if (got < 0 && errno != EAGAIN && errno != ECONNRESET && errno != ENOTCONN) {
		err = file_save_error(probe, -errno, "cannot read its queue");
	}
	free(data);
	return err;
}

/* ---- data not delivered ------------------------------------------------------------- */

/* A sequence number in repair mode. */
static int sequence(int fd, int queue, uint32_t *out)
{
	socklen_t length = sizeof(*out);
	int err = set(fd, TCP_REPAIR_QUEUE, queue);

	if (!err && getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, out, &length))
		err = -errno;
	return err;
}

/* The last `count` bytes of the send queue, which has `total`. */
static int peek_sent(int fd, size_t total, size_t count, Kcr__InetSocket *s)
{
	char *data = malloc(total);
	ssize_t got;
	int err;

	if (!data)
		return -ENOMEM;
	err = set(fd, TCP_REPAIR_QUEUE, QUEUE_SEND);
	got = err ? -1 : recv(fd, data, total, MSG_PEEK | MSG_DONTWAIT);
	if (!err && got < (ssize_t)count)
		err = got < 0 ? -errno : -EIO;
	if (!err) {
		s->has_send_queue = true;
		err = file_bytes(&s->send_queue, data + got - count, count);
	}
	free(data);
	return err;
}

/* Ends repair mode without a word to the peer; it takes SO_REUSEADDR with it. */
static void end_repair(int fd, int reuse)
{
	set(fd, TCP_REPAIR_QUEUE, 0);
	if (set(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP))
		set(fd, TCP_REPAIR, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
}

static int save_undelivered(int from, int to, size_t total, Kcr__InetSocket *s)
{
	int reuse_from = socket_value(from, SO_REUSEADDR), reuse_to;
	uint32_t sent, received;
	bool ended;
	int err = set(from, TCP_REPAIR, 1);

	if (err)
		return err;
	reuse_to = socket_value(to, SO_REUSEADDR);
	err = set(to, TCP_REPAIR, 1);
	if (!err) {
		err = sequence(from, QUEUE_SEND, &sent);
		if (!err)
			err = sequence(to, QUEUE_RECEIVE, &received);
		ended = s->state == TCP_FIN_WAIT1 || s->state == TCP_CLOSING;
		if (!err && sent - received > (uint32_t)ended)
			err = peek_sent(from, total, sent - received - ended, s);
		end_repair(to, reuse_to);
	}
	end_repair(from, reuse_from);
	return err;
}

int tcp_queues_save(struct file_table *t, const struct file_probe *probe,
		    const struct file_probe *peer, Kcr__InetSocket *s)
{
	int unsent = 0, total = 0;
	int err = tcp_receive_queue_save(probe, s);

	if (err || ioctl(probe->fd, SIOCOUTQNSD, &unsent) || unsent <= 0 ||
	    ioctl(probe->fd, SIOCOUTQ, &total) || total <= 0)
		return err;
	err = save_undelivered(probe->fd, peer->fd, total, s);
	if (err == -EPERM)
		return file_unsupported(t, "a TCP connection with %d bytes that its receiver has no "
					"room for, which takes CAP_NET_ADMIN to save", unsent);
	return err ? file_save_error(probe, err, "cannot read what it has not sent") : 0;
}
