// SPDX-License-Identifier: GPL-2.0
/*
 * What is in a TCP connection.  Unread data is looked at with MSG_PEEK.  Data
 * that the receiver had no room for waits at the sender, where only repair
 * mode (CAP_NET_ADMIN) shows it; the counters of both tell how much that is.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

#ifndef TCP_REPAIR_OFF_NO_WP
#define TCP_REPAIR_OFF_NO_WP	-1
#endif

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

/* ---- connections inside the tree ----------------------------------------------------- */

static int get_info(int fd, struct tcp_info *info)
{
	socklen_t length = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) ? -errno : 0;
}

/* A handshake leaves a round-trip time or options; a refused attempt does not. */
bool tcp_was_connected(int fd)
{
	struct tcp_info info;
	int unread = 0;

	if (get_info(fd, &info))
		return false;
	return info.tcpi_rtt || info.tcpi_options || info.tcpi_bytes_received ||
	       info.tcpi_bytes_acked || (!ioctl(fd, SIOCINQ, &unread) && unread > 0);
}

/* Bytes given to `from` that `to` has not got; the end of the stream counts as one there. */
static int count_undelivered(int from, int to, int64_t *undelivered, uint64_t *received)
{
	struct tcp_info sender, receiver;
	int err = get_info(from, &sender) ?: get_info(to, &receiver);

	if (err)
		return err;
	*received = receiver.tcpi_bytes_received;
	*undelivered = (int64_t)(sender.tcpi_bytes_sent - sender.tcpi_bytes_retrans +
				 sender.tcpi_notsent_bytes - receiver.tcpi_bytes_received);
	return 0;
}

/* Ends repair mode without a word to the peer; it takes SO_REUSEADDR with it. */
static void end_repair(int fd, int reuse)
{
	set(fd, TCP_REPAIR_QUEUE, 0);
	if (set(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP))
		set(fd, TCP_REPAIR, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
}

/* Appends the last `count` bytes of what `fd` has not got rid of. */
static int add_undelivered(int fd, size_t count, ProtobufCBinaryData *out)
{
	int reuse = socket_value(fd, SO_REUSEADDR), total = 0, err;
	uint8_t *data, *more;
	ssize_t got;

	if (ioctl(fd, SIOCOUTQ, &total) || total < (int)count)
		return -EAGAIN;
	data = malloc(total);
	more = data ? realloc(out->data, out->len + count) : NULL;
	if (!more) {
		free(data);
		return -ENOMEM;
	}
	out->data = more;
	err = set(fd, TCP_REPAIR, 1);
	if (!err) {
		err = set(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
		got = err ? -1 : recv(fd, data, total, MSG_PEEK | MSG_DONTWAIT);
		if (!err && got < (ssize_t)count)
			err = -EAGAIN;
		end_repair(fd, reuse);
	}
	if (!err) {
		memcpy(more + out->len, data + got - count, count);
		out->len += count;
	}
	free(data);
	return err;
}

static int add_unread(int fd, ProtobufCBinaryData *out)
{
	int unread = 0;
	ssize_t got;

	if (ioctl(fd, SIOCINQ, &unread) || unread <= 0)
		return 0;
	free(out->data);
	out->data = malloc(unread);
	if (!out->data)
		return -ENOMEM;
	got = recv(fd, out->data, unread, MSG_PEEK | MSG_DONTWAIT);
	if (got != unread)
		return -EAGAIN;
	out->len = got;
	return 0;
}

/* All that `to` has yet to read; -EAGAIN if some of it moved meanwhile. */
static int try_stream(int from, int to, ProtobufCBinaryData *out)
{
	uint64_t received, later;
	int64_t undelivered;
	int err = count_undelivered(from, to, &undelivered, &received);

	out->len = 0;
	if (!err)
		err = add_unread(to, out);
	if (!err && undelivered > 0)
		err = add_undelivered(from, undelivered, out);
	if (!err)
		err = count_undelivered(from, to, &undelivered, &later);
	return err ?: later == received ? 0 : -EAGAIN;
}

/* The kernel goes on delivering while the programs are stopped: until it has settled. */
int tcp_stream_save(struct file_table *t, const struct file_probe *probe,
		    const struct file_probe *peer, Kcr__InetSocket *s)
{
	int err = -EAGAIN;

	for (int patience = 0; err == -EAGAIN && patience < 100; patience++) {
		if (patience)
			usleep(1000);
		err = try_stream(probe->fd, peer->fd, &s->send_queue);
	}
	s->has_send_queue = s->send_queue.len;
	if (err == -EPERM)
		return file_unsupported(t, "a TCP connection with more in it than its receiver has "
					"room for, which takes CAP_NET_ADMIN to save");
	return err ? file_save_error(probe, err, "cannot read what is in it") : 0;
}
