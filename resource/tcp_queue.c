// SPDX-License-Identifier: GPL-2.0
/*
 * The data in a TCP connection.  Unread data is read with MSG_PEEK.  Data
 * that the receiver had no room for waits at the sender, where only repair
 * mode (CAP_NET_ADMIN) shows it.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <linux/bpf.h>	/* the states of TCP, beside linux/tcp.h */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/apart.h"
#include "resource/file.h"
#include "resource/socket.h"

#define SETTLE_MS	300	/* longer than a delayed ACK takes */

#ifndef TCP_REPAIR_OFF_NO_WP
#define TCP_REPAIR_OFF_NO_WP	-1
#endif

static int set(int fd, int name, int value)
{
	return setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)) ? -errno : 0;
}

/* Peeks from the beginning, wherever the program is (SO_PEEK_OFF, of TCP since 6.9). */
static ssize_t peek_unread(int fd, void *data, size_t size)
{
	int offset = socket_value(fd, SO_PEEK_OFF), none = -1, err;
	ssize_t got;

	if (offset >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	got = recv(fd, data, size, MSG_PEEK | MSG_DONTWAIT);
	err = errno;
	if (offset >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
	errno = err;
	return got;
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
	got = peek_unread(probe->fd, data, unread);
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
	       info.tcpi_bytes_acked ||
	       (socket_value(fd, SO_PROTOCOL) == IPPROTO_TCP &&	/* a new one of MPTCP says 1 */
		!ioctl(fd, SIOCINQ, &unread) && unread > 0);
}

bool tcp_has_sent(int fd)
{
	struct tcp_info info;

	return !get_info(fd, &info) && info.tcpi_segs_out;
}

/* Bytes of data that have arrived, as a counter. */
static int count_received(int fd, uint64_t *received)
{
	struct tcp_info info;
	int err = get_info(fd, &info);

	*received = info.tcpi_bytes_received;
	return err;
}

/* Is a FIN in the send queue, where it counts as a byte? */
static bool has_queued_end(const struct tcp_info *info)
{
	return info->tcpi_state == BPF_TCP_FIN_WAIT1 || info->tcpi_state == BPF_TCP_CLOSING ||
	       info->tcpi_state == BPF_TCP_LAST_ACK;
}

/*
 * Waits until data in flight are acknowledged: 0, nothing is left; 1, data are left that
 * the receiver has no room for (or that are lost on the way).
 */
static int settle(int fd)
{
	for (int waited = 0;; waited++) {
		struct tcp_info info;
		int left = 0, err = get_info(fd, &info);

		if (err || ioctl(fd, SIOCOUTQ, &left))
			return err ?: -errno;
		if (left <= has_queued_end(&info))
			return 0;
		if (!info.tcpi_unacked || waited == SETTLE_MS)
			return 1;
		usleep(1000);
	}
}

/* Begins repair mode for a queue, TCP_SEND_QUEUE or TCP_RECV_QUEUE. */
static int begin_repair(int fd, int queue)
{
	return set(fd, TCP_REPAIR, 1) ?: set(fd, TCP_REPAIR_QUEUE, queue);
}

/* Ends repair mode without notifying the peer; this clears SO_REUSEADDR. */
static void end_repair(int fd, int reuse)
{
	set(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	if (set(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP))
		set(fd, TCP_REPAIR, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
}

/* In repair mode: the sequence number behind the queue. */
static int queue_end(int fd, uint32_t *end)
{
	socklen_t length = sizeof(*end);

	return getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, end, &length) ? -errno : 0;
}

static int received_end(int fd, uint32_t *end)
{
	int reuse = socket_value(fd, SO_REUSEADDR), err = begin_repair(fd, TCP_RECV_QUEUE);

	if (!err)
		err = queue_end(fd, end);
	end_repair(fd, reuse);
	return err;
}

/*
 * Reads the send queue, sent or not, without taking from it: `size` bytes at most.  *end:
 * the sequence number behind the data.  The number of bytes or -errno.  If an ACK arrives
 * while the send queue is in repair mode, the kernel marks all of it as sent: so nothing
 * should be in flight, and repair mode is kept as short as possible.
 */
static ssize_t peek_unsent(int fd, uint8_t *data, size_t size, uint32_t *end)
{
	int reuse = socket_value(fd, SO_REUSEADDR), err = begin_repair(fd, TCP_SEND_QUEUE);
	struct tcp_info info;
	ssize_t got = 0;

	if (!err)
		err = queue_end(fd, end);
	if (!err)
		got = recv(fd, data, size, MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		err = -errno;
	end_repair(fd, reuse);
	if (!err)
		err = get_info(fd, &info);
	if (!err)
		*end -= has_queued_end(&info);
	return err ?: got;
}

struct repair {
	int from, to;
	uint32_t received, end;
};

/* Apart: what is left in repair mode is never sent. */
static int look_into(void *arg, ProtobufCBinaryData *data)
{
	struct repair *repair = arg;
	int total = 0, err = received_end(repair->to, &repair->received);
	ssize_t got;

	if (err)
		return err;
	if (ioctl(repair->from, SIOCOUTQ, &total) || total <= 0)
		return -EAGAIN;
	data->data = malloc(total);
	if (!data->data)
		return -ENOMEM;
	got = peek_unsent(repair->from, data->data, total, &repair->end);
	data->len = got < 0 ? 0 : got;
	return got < 0 ? got : 0;
}

/* Appends the data of `from` that `to` has not received, by their sequence numbers. */
static int add_undelivered(int from, int to, ProtobufCBinaryData *out)
{
	struct repair repair = { .from = from, .to = to };
	ProtobufCBinaryData queue;
	uint8_t *more = NULL;
	int err = apart_do(look_into, &repair, sizeof(repair), &queue);
	int32_t count = repair.end - repair.received;

	if (!err && count > 0 && (size_t)count > queue.len)
		err = -EAGAIN;
	if (!err && count > 0) {
		more = realloc(out->data, out->len + count);
		err = more ? 0 : -ENOMEM;
	}
	if (more) {
		memcpy(more + out->len, queue.data + queue.len - count, count);
		out->data = more;
		out->len += count;
	}
	free(queue.data);
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
	got = peek_unread(fd, out->data, unread);
	if (got != unread)
		return -EAGAIN;
	out->len = got;
	return 0;
}

/* All that `to` has yet to read; -EAGAIN if some of it moved meanwhile. */
static int try_stream(int from, int to, ProtobufCBinaryData *out)
{
	uint64_t received, later;
	int left = settle(from), err;

	if (left < 0)
		return left;
	out->len = 0;
	err = count_received(to, &received) ?: add_unread(to, out);
	if (!err && left)
		err = add_undelivered(from, to, out);
	if (!err)
		err = count_received(to, &later);
	return err ?: later == received ? 0 : -EAGAIN;
}

/* The kernel goes on delivering while the programs are stopped: retry until it has settled. */
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
