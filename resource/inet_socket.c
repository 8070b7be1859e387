// SPDX-License-Identifier: GPL-2.0
/*
 * TCP, UDP, ping and raw sockets.  Listening and unconnected sockets are restored with their
 * address.  A TCP connection inside the tree is established again with the contents
 * of its queues; one to the outside is restored reset, with what was unread.
 * Datagrams not yet read are lost, as datagrams may be.  This file saves;
 * inet_rebuild.c restores.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_address.h"
#include "resource/inet_raw.h"
#include "resource/multicast.h"
#include "resource/not_accepted.h"
#include "resource/option_names.h"
#include "resource/socket.h"
#include "resource/socket_hidden.h"
#include "resource/socket_names.h"
#include "resource/socket_unsaved.h"
#include "resource/socket_urgent.h"

static bool match(const struct file_probe *probe)
{
	int family = socket_family(probe);

	return family == AF_INET || family == AF_INET6;
}

void inet_end_make(uint8_t end[INET_END], int family, const void *address, in_port_t port)
{
	memset(end, 0, INET_END);
	if (family == AF_INET) {
		memset(end + 10, 0xff, 2);
		memcpy(end + 12, address, 4);
	} else {
		memcpy(end, address, 16);
	}
	memcpy(end + 16, &port, 2);
}

bool inet_end_get(int fd, bool remote, uint8_t end[INET_END])
{
	union inet_address a = {};
	socklen_t length = sizeof(a);

	if (remote ? getpeername(fd, &a.any, &length) : getsockname(fd, &a.any, &length))
		return false;
	if (a.any.sa_family == AF_INET)
		inet_end_make(end, AF_INET, &a.v4.sin_addr, a.v4.sin_port);
	else
		inet_end_make(end, AF_INET6, &a.v6.sin6_addr, a.v6.sin6_port);
	return true;
}

/* The ends of all TCP connections in the table, collected once. */
struct ends {
	size_t files, count;		/* registered files; connections among them */
	struct connection { uint32_t id; uint8_t local[INET_END], remote[INET_END]; } connection[];
};

static const struct ends *collect_ends(struct file_table *t)
{
	void **slot = file_table_inet_ends(t);
	struct ends *ends = *slot;

	if (ends && ends->files == file_table_count(t))
		return ends;
	free(ends);
	*slot = ends = malloc(sizeof(*ends) + file_table_count(t) * sizeof(*ends->connection));
	if (!ends)
		return NULL;
	ends->files = file_table_count(t);
	ends->count = 0;
	for (uint32_t id = 1; id <= ends->files; id++) {
		const struct file_probe *p = file_table_probe(t, id);
		struct connection *c = &ends->connection[ends->count];

		if (!match(p) || socket_value(p->fd, SO_PROTOCOL) != IPPROTO_TCP ||
		    !inet_end_get(p->fd, true, c->remote) || !inet_end_get(p->fd, false, c->local))
			continue;
		c->id = id;
		ends->count++;
	}
	return ends;
}

int inet_end_find(struct file_table *t, const uint8_t local[INET_END],
		  const uint8_t remote[INET_END], const struct file_probe *except,
		  uint32_t *id)
{
	const struct ends *ends = collect_ends(t);

	*id = 0;
	if (!ends)
		return report_errno(-ENOMEM, "saving sockets");
	for (size_t i = 0; i < ends->count && !*id; i++) {
		const struct connection *c = &ends->connection[i];

		if (!memcmp(c->local, local, INET_END) && !memcmp(c->remote, remote, INET_END) &&
		    file_table_probe(t, c->id) != except)
			*id = c->id;
	}
	return 0;
}

/* The connected TCP socket of the tree with our ends swapped; 0: none. */
static int find_peer(struct file_table *t, const struct file_probe *probe, uint32_t *id)
{
	uint8_t local[INET_END], remote[INET_END];

	*id = 0;
	if (!inet_end_get(probe->fd, false, local) || !inet_end_get(probe->fd, true, remote))
		return 0;
	return inet_end_find(t, remote, local, probe, id);
}

static int save_address(const struct file_probe *probe, bool remote, ProtobufCBinaryData *out,
			protobuf_c_boolean *has)
{
	union inet_address a = {};
	socklen_t length = sizeof(a);

	if (remote ? getpeername(probe->fd, &a.any, &length) :
		     getsockname(probe->fd, &a.any, &length))
		return 0;
	*has = true;
	return file_bytes(out, &a, length);
}

/*
 * Hung up by its peer.  Its port may be that of the listening socket, and it may have
 * unread data.
 */
static int save_ended(struct file_table *t, const struct file_probe *probe, Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd };
	int err = socket_urgent_check(t, probe);

	if (err)
		return err;
	s->has_peer_outside = s->peer_outside = true;
	/* Not reset, or the program has been told: it reads end of file. */
	if (poll(&p, 1, 0) >= 0 && !(p.revents & POLLERR))
		s->state = TCP_TIME_WAIT;
	return file_table_is_dry(t) ? 0 : tcp_receive_queue_save(probe, s);
}

/*
 * A program that has not read the error of its attempt to connect must not take it for a success.
 * One that is under way comes to an end: whoever has the address by the restart is not called.
 */
static int save_refused(Kcr__InetSocket *s)
{
	s->has_refused = s->refused = s->has_peer_outside = s->peer_outside = true;
	return 0;
}

/*
 * An attempt that failed has kept its address and its count of segments.  connect(2) to AF_UNSPEC takes
 * these away: the address unless the program has bound it, the count not in all kernels.
 */
static bool has_address(int fd)
{
	union inet_address a;
	socklen_t length = sizeof(a);

	return !getsockname(fd, &a.any, &length) && !inet_address_is_any(&a);
}

static int save_closed(struct file_table *t, const struct file_probe *probe, Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd };

	if (tcp_was_connected(probe->fd))
		return save_ended(t, probe, s);
	return poll(&p, 1, 0) > 0 && p.revents & POLLERR && has_address(probe->fd) &&
	       tcp_has_sent(probe->fd) ? save_refused(s) : 0;
}

/*
 * Has the program ended its receiving direction (SHUT_RD)?  Until the peer's end has come,
 * poll(2) shows nothing else as that.
 */
static void save_shut_read(const struct file_probe *probe, Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd, .events = POLLRDHUP };

	s->has_shut = (s->state == TCP_ESTABLISHED || s->state == TCP_FIN_WAIT1 ||
		       s->state == TCP_FIN_WAIT2) &&
		      poll(&p, 1, 0) > 0 && p.revents & POLLRDHUP;
	s->shut = SHUT_RD;
}

static int save_tcp(struct file_table *t, const struct file_probe *probe, Kcr__InetSocket *s)
{
	struct tcp_info info = {};
	socklen_t length = sizeof(info);
	uint32_t peer;
	int err;

	if (getsockopt(probe->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return file_save_error(probe, -errno, "cannot query its state");
	s->has_state = true;
	s->state = info.tcpi_state;
	if (info.tcpi_state == TCP_LISTEN) {
		s->has_listening = s->listening = s->has_backlog = true;
		s->backlog = info.tcpi_sacked;
		return tcp_waiting_save(t, probe, info.tcpi_unacked, s);
	}
	if (info.tcpi_state == TCP_CLOSE)
		return save_closed(t, probe, s);
	if (info.tcpi_state == TCP_SYN_SENT)
		return save_refused(s);
	save_shut_read(probe, s);
	err = socket_urgent_check(t, probe);
	if (err)
		return err;
	if (find_peer(t, probe, &peer))
		return -ENOMEM;
	if (peer) {
		s->has_peer_file_id = true;
		s->peer_file_id = peer;
		return file_table_is_dry(t) ? 0 :
			tcp_stream_save(t, probe, file_table_probe(t, peer), s);
	}
	if (tcp_waiting_has(t, probe)) {
		s->has_pending = s->pending = true;
		return 0;
	}
	err = tcp_orphan_check(t, probe);
	if (err)
		return err;
	s->has_peer_outside = s->peer_outside = true;
	return file_table_is_dry(t) ? 0 : tcp_receive_queue_save(probe, s);
}

/* Unread datagrams have addresses that a restart could not send from. */
static void save_datagrams(struct file_table *t, const struct file_probe *probe, uint32_t shut,
			   Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd, .events = POLLIN };

	if (shut) {
		s->has_shut = true;
		s->shut = shut == KCR_SOCKET_SHUT_READ ? SHUT_RD :
			  shut == KCR_SOCKET_SHUT_WRITE ? SHUT_WR : SHUT_RDWR;
	}
	if (!(shut & KCR_SOCKET_SHUT_READ) && !file_table_is_dry(t) && poll(&p, 1, 0) > 0 &&
	    p.revents & POLLIN)
		report_warn("process %d: datagrams that it has not read are not saved (%s)",
			    probe->pid, probe->link);
}

/* A place that the program had peeked to (SO_PEEK_OFF) is lost with the datagrams before it. */
static void forget_peeked(const struct file_probe *probe, Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd, .events = POLLIN };
	const int start = 0;

	for (size_t i = 0; i < s->n_option && poll(&p, 1, 0) > 0; i++) {
		Kcr__SocketOption *o = s->option[i];

		if (o->level == SOL_SOCKET && o->name == SO_PEEK_OFF &&
		    o->value.len == sizeof(start) && p.revents & POLLIN)
			memcpy(o->value.data, &start, sizeof(start));
	}
}

/* What a socket that goes on sending after a restart has of its own sending. */
static int save_sending(struct file_table *t, const struct file_probe *probe,
			const Kcr__InetSocket *s)
{
	struct pollfd p = { .fd = probe->fd };
	int err = socket_count_check(t, probe);

	if (!err && s->type != SOCK_STREAM)
		err = datagrams_kept_back_check(t, probe);
	if (!err && !file_table_is_dry(t) && poll(&p, 1, 0) > 0 && p.revents & POLLERR)
		report_warn("process %d: errors and time stamps that it has not read "
			    "(MSG_ERRQUEUE) are not saved (%s)", probe->pid, probe->link);
	return err;
}

/* A socket of Multipath TCP that listens, or has not been connected yet. */
static bool is_unused_mptcp(const Kcr__InetSocket *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	struct tcp_info info = {};
	socklen_t length = sizeof(info);
	uint8_t end[INET_END];

	if (s->type != SOCK_STREAM || s->protocol != IPPROTO_MPTCP || inet_end_get(fd, true, end) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return false;
	return info.tcpi_state == TCP_LISTEN ||
	       (info.tcpi_state == TCP_CLOSE && !tcp_was_connected(fd) &&
		poll(&p, 1, 0) >= 0 && !(p.revents & POLLRDHUP));
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__InetSocket *s = file_new_kind(file, KCR__FILE__KIND_INET_SOCKET, sizeof(*s));
	struct kcr_socket hidden;
	int err;

	if (!s)
		return -ENOMEM;
	s->family = socket_value(probe->fd, SO_DOMAIN);
	s->type = socket_value(probe->fd, SO_TYPE);
	s->protocol = socket_value(probe->fd, SO_PROTOCOL);
	if (!(s->type == SOCK_STREAM && s->protocol == IPPROTO_TCP) &&
	    !(s->type == SOCK_DGRAM && s->protocol == IPPROTO_UDP) && !inet_raw_is(s) &&
	    !is_unused_mptcp(s, probe->fd))
		return socket_refuse_protocol(t, s->type, s->protocol);
	err = socket_hidden_get(t, probe, &hidden) ?: socket_namespace_check(t, probe) ?:
	      inet_unsaved_check(t, probe, s) ?: socket_hidden_check(t, &hidden);
	if (!err)
		err = save_address(probe, false, &s->local, &s->has_local);
	if (!err)
		err = save_address(probe, true, &s->remote, &s->has_remote);
	if (!err && s->type == SOCK_STREAM)
		err = save_tcp(t, probe, s);
	else if (!err)
		save_datagrams(t, probe, hidden.shut, s);
	if (!err && inet_raw_is(s))
		err = inet_raw_save(t, probe, s);
	if (!err && (s->type != SOCK_STREAM || s->peer_file_id || s->pending))
		err = save_sending(t, probe, s);
	if (!err)
		inet_bind_save(probe, s);
	if (!err)
		err = socket_options_save(t, probe, s->family, s->type, s->protocol, &s->option,
					  &s->n_option) ?: socket_hidden_save(t, probe, &hidden, s);
	if (!err && s->protocol == IPPROTO_UDP)
		forget_peeked(probe, s);
	if (!err && s->type != SOCK_STREAM)
		err = multicast_save(probe, s->family, &s->option, &s->n_option);
	return err;
}

/* As one whose peer is outside. */
static int leave_out(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__InetSocket *s = file->inet_socket;

	if (!file_table_left_out(t, s->peer_file_id))
		return 0;
	s->has_peer_file_id = s->has_send_queue = false;
	s->peer_file_id = s->send_queue.len = 0;
	s->has_peer_outside = s->peer_outside = true;
	return tcp_receive_queue_save(probe, s);
}

const struct file_kind file_kind_inet_socket = {
	.kind = KCR__FILE__KIND_INET_SOCKET,
	.name = "internet socket",
	.match = match,
	.save = save,
	.leave_out = leave_out,
	.open = inet_socket_open,
	.check = inet_socket_check,
	.complete = inet_socket_complete,
	.deliver = inet_socket_deliver,
	.finish = inet_socket_finish,
};
