// SPDX-License-Identifier: GPL-2.0
/*
 * What all kinds of sockets share.  Only options that differ from those of a new
 * socket are saved; buffer sizes only if the program has set them, since
 * setting them disables auto-tuning.
 */
#include "resource/file.h"
#include "resource/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/icmp.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <netinet/icmp6.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/identity.h"
#include "resource/multicast.h"
#include "resource/option_names.h"
#include "resource/socket_filter.h"

#define SEND_LOCKED	1
#define RECEIVE_LOCKED	2
#define OPTION_MAX	64
#define MIN_SEGMENT	88		/* TCP_MIN_MSS */

#define HIDDEN		(-2)	/* as family: getsockopt(2) does not tell it (socket_hidden.c) */

#define O(family, level, name, when)	{ family, level, name, when, #name }

static const struct option {
	int family;			/* 0: any */
	int level, name;
	enum {
		EARLY,
		LATE,			/* set when all queues are filled: it would be in the way */
		SINGLE,			/* the kernel itself sets it in connections, or refuses to */
		BINDING,		/* before it is bound, but in the way on its way to a peer */
	} when;
	const char *text;
} options[] = {
	O(0, SOL_SOCKET, SO_REUSEADDR, EARLY), O(0, SOL_SOCKET, SO_REUSEPORT, EARLY),
	O(0, SOL_SOCKET, SO_KEEPALIVE, EARLY), O(0, SOL_SOCKET, SO_BROADCAST, EARLY),
	O(0, SOL_SOCKET, SO_LINGER, EARLY), O(0, SOL_SOCKET, SO_OOBINLINE, EARLY),
	O(0, SOL_SOCKET, SO_DONTROUTE, EARLY), O(0, SOL_SOCKET, SO_MARK, EARLY),
	O(0, SOL_SOCKET, SO_RCVLOWAT, EARLY),
	O(0, SOL_SOCKET, SO_RCVTIMEO, EARLY), O(0, SOL_SOCKET, SO_SNDTIMEO, EARLY),
	O(0, SOL_SOCKET, SO_PASSCRED, EARLY), O(0, SOL_SOCKET, SO_TIMESTAMP, EARLY),
	O(0, SOL_SOCKET, SO_TIMESTAMPNS, EARLY), O(0, SOL_SOCKET, SO_BINDTODEVICE, BINDING),
	O(0, SOL_SOCKET, SO_SNDBUF, EARLY), O(0, SOL_SOCKET, SO_RCVBUF, EARLY),
	O(0, SOL_SOCKET, SO_TIMESTAMPING, EARLY), O(0, SOL_SOCKET, SO_RXQ_OVFL, EARLY),
	O(0, SOL_SOCKET, SO_NO_CHECK, EARLY), O(0, SOL_SOCKET, SO_ZEROCOPY, EARLY),
	O(0, SOL_SOCKET, SO_MAX_PACING_RATE, EARLY),
	O(0, SOL_SOCKET, SO_SELECT_ERR_QUEUE, EARLY), O(0, SOL_SOCKET, SO_BUSY_POLL, EARLY),
	O(0, SOL_SOCKET, SO_PASSSEC, EARLY), O(0, SOL_SOCKET, SO_PASSPIDFD, EARLY),
	O(0, SOL_SOCKET, SO_PEEK_OFF, EARLY), O(0, SOL_SOCKET, SO_INCOMING_CPU, SINGLE),
	O(0, SOL_SOCKET, SO_PREFER_BUSY_POLL, EARLY),
	O(0, SOL_SOCKET, SO_BUSY_POLL_BUDGET, EARLY), O(0, SOL_SOCKET, SO_TXREHASH, EARLY),
	O(0, SOL_SOCKET, SO_RCVMARK, EARLY), O(0, SOL_SOCKET, SO_RCVPRIORITY, EARLY),
	O(0, SOL_SOCKET, SO_TXTIME, EARLY), O(0, SOL_SOCKET, SO_WIFI_STATUS, EARLY),
	O(0, SOL_SOCKET, SO_NOFCS, EARLY), O(0, SOL_SOCKET, SO_TIMESTAMP_NEW, EARLY),
	O(0, SOL_SOCKET, SO_TIMESTAMPNS_NEW, EARLY),	/* behind that: it shows as both */
	O(0, SOL_SOCKET, SO_TIMESTAMPING_NEW, EARLY), O(0, SOL_SOCKET, SO_DEBUG, EARLY),
	O(0, SOL_SOCKET, SO_RESERVE_MEM, EARLY), O(AF_UNIX, SOL_SOCKET, SO_INQ, EARLY),
	O(AF_UNIX, SOL_SOCKET, SO_PASSRIGHTS, LATE), O(-1, IPPROTO_IP, IP_TOS, EARLY),
	O(0, SOL_SOCKET, SO_PRIORITY, EARLY),		/* behind that, which sets it */
	O(-1, IPPROTO_IP, IP_TTL, EARLY), O(-1, IPPROTO_IP, IP_FREEBIND, EARLY),
	O(-1, IPPROTO_IP, IP_TRANSPARENT, EARLY), O(-1, IPPROTO_IP, IP_PKTINFO, EARLY),
	O(-1, IPPROTO_IP, IP_RECVTOS, EARLY), O(-1, IPPROTO_IP, IP_RECVTTL, EARLY),
	O(-1, IPPROTO_IP, IP_RECVERR, EARLY), O(-1, IPPROTO_IP, IP_MTU_DISCOVER, EARLY),
	O(-1, IPPROTO_IP, IP_MULTICAST_TTL, EARLY), O(-1, IPPROTO_IP, IP_MULTICAST_LOOP, EARLY),
	O(-1, IPPROTO_IP, IP_MULTICAST_IF, EARLY), O(-1, IPPROTO_IP, IP_MULTICAST_ALL, EARLY),
	O(-1, IPPROTO_IP, IP_RECVOPTS, EARLY), O(-1, IPPROTO_IP, IP_RETOPTS, EARLY),
	O(-1, IPPROTO_IP, IP_RECVORIGDSTADDR, EARLY), O(-1, IPPROTO_IP, IP_MINTTL, LATE),
	O(-1, IPPROTO_IP, IP_UNICAST_IF, EARLY),
	O(-1, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, EARLY),
	O(-1, IPPROTO_IP, IP_RECVFRAGSIZE, EARLY), O(-1, IPPROTO_IP, IP_OPTIONS, LATE),
	O(-1, IPPROTO_IP, IP_PASSSEC, EARLY), O(-1, IPPROTO_IP, IP_RECVERR_RFC4884, EARLY),
	O(-1, IPPROTO_IP, IP_LOCAL_PORT_RANGE, EARLY), O(-1, IPPROTO_IP, IP_CHECKSUM, EARLY),
	O(-1, IPPROTO_IP, IP_HDRINCL, EARLY), O(-1, IPPROTO_IP, IP_NODEFRAG, EARLY),
	O(AF_INET, SOL_RAW, ICMP_FILTER, EARLY), O(AF_INET6, SOL_RAW, IPV6_CHECKSUM, EARLY),
	O(AF_INET6, IPPROTO_ICMPV6, ICMP6_FILTER, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_HDRINCL, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_UNICAST_HOPS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_TCLASS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVPKTINFO, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVERR, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVERR_RFC4884, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_ROUTER_ALERT_ISOLATE, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_IF, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_ALL, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVTCLASS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVPATHMTU, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MTU_DISCOVER, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_DONTFRAG, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_FREEBIND, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_TRANSPARENT, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_MINHOPCOUNT, LATE),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_UNICAST_IF, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVHOPOPTS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVRTHDR, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVDSTOPTS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RECVFRAGSIZE, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_FLOWINFO, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_2292PKTINFO, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_2292HOPLIMIT, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_2292HOPOPTS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_2292DSTOPTS, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_2292RTHDR, EARLY),
	O(AF_INET6, IPPROTO_IPV6, IPV6_HOPOPTS, LATE),
	O(AF_INET6, IPPROTO_IPV6, IPV6_DSTOPTS, LATE),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RTHDRDSTOPTS, LATE),
	O(AF_INET6, IPPROTO_IPV6, IPV6_RTHDR, LATE),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_PKTINFO, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_BROADCAST_ERROR, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_NO_ENOBUFS, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_CAP_ACK, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_EXT_ACK, EARLY),
	O(AF_NETLINK, SOL_NETLINK, NETLINK_GET_STRICT_CHK, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_VERSION, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_AUXDATA, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_ORIGDEV, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_RESERVE, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_LOSS, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_VNET_HDR, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_VNET_HDR_SZ, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_TIMESTAMP, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_TX_HAS_OFF, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_QDISC_BYPASS, EARLY),
	O(AF_PACKET, SOL_PACKET, PACKET_IGNORE_OUTGOING, EARLY),
	O(-1, IPPROTO_TCP, TCP_NODELAY, EARLY), O(-1, IPPROTO_TCP, TCP_CORK, EARLY),
	O(-1, IPPROTO_TCP, TCP_KEEPIDLE, EARLY), O(-1, IPPROTO_TCP, TCP_KEEPINTVL, EARLY),
	O(-1, IPPROTO_TCP, TCP_KEEPCNT, EARLY), O(-1, IPPROTO_TCP, TCP_SYNCNT, EARLY),
	O(-1, IPPROTO_TCP, TCP_DEFER_ACCEPT, EARLY),
	O(-1, IPPROTO_TCP, TCP_USER_TIMEOUT, EARLY), O(-1, IPPROTO_TCP, TCP_FASTOPEN, EARLY),
	O(-1, IPPROTO_TCP, TCP_CONGESTION, EARLY), O(-1, IPPROTO_TCP, TCP_QUICKACK, EARLY),
	O(-1, IPPROTO_TCP, TCP_LINGER2, EARLY),
	O(-1, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, EARLY), O(-1, IPPROTO_TCP, TCP_INQ, EARLY),
	O(-1, IPPROTO_TCP, TCP_SAVE_SYN, EARLY), O(-1, IPPROTO_TCP, TCP_NOTSENT_LOWAT, LATE),
	O(-1, IPPROTO_TCP, TCP_TX_DELAY, LATE),
	O(-1, IPPROTO_TCP, TCP_FASTOPEN_KEY, EARLY), O(-1, IPPROTO_TCP, TCP_RTO_MAX_MS, EARLY),
	O(-1, IPPROTO_TCP, TCP_RTO_MIN_US, EARLY), O(-1, IPPROTO_TCP, TCP_DELACK_MAX_US, EARLY),
	O(-1, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, EARLY),
	O(-1, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, SINGLE),
	O(-1, IPPROTO_TCP, TCP_WINDOW_CLAMP, SINGLE), O(-1, IPPROTO_TCP, TCP_MAXSEG, SINGLE),
	O(-1, IPPROTO_UDP, UDP_CORK, EARLY), O(-1, IPPROTO_UDP, UDP_SEGMENT, EARLY),
	O(-1, IPPROTO_UDP, UDP_GRO, EARLY), O(-1, IPPROTO_UDP, UDP_NO_CHECK6_TX, EARLY),
	O(-1, IPPROTO_UDP, UDP_NO_CHECK6_RX, EARLY), O(-1, IPPROTO_UDP, UDP_ENCAP, EARLY),
	O(HIDDEN, IPPROTO_IP, IP_ROUTER_ALERT, EARLY), O(HIDDEN, IPPROTO_IPV6, IPV6_MTU, LATE),
	O(HIDDEN, IPPROTO_IPV6, IPV6_PKTINFO, LATE),
};

#undef O

#define NR_OPTIONS	(sizeof(options) / sizeof(*options))

int socket_value(int fd, int name)
{
	socklen_t length = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &length) ? -1 : value;
}

int socket_family(const struct file_probe *probe)
{
	if (!S_ISSOCK(probe->st.st_mode) || probe->flags & O_PATH)
		return -1;
	return socket_value(probe->fd, SO_DOMAIN);
}

static bool applies(const struct option *o, int family, int type, int protocol, int locked)
{
	if (o->family == HIDDEN)
		return false;
	if (o->level == SOL_SOCKET && o->name == SO_SNDBUF)
		return locked < 0 ? type != SOCK_STREAM || family == AF_UNIX : locked & SEND_LOCKED;
	if (o->level == SOL_SOCKET && o->name == SO_RCVBUF)
		return locked < 0 ? type != SOCK_STREAM && family != AF_UNIX : locked & RECEIVE_LOCKED;
	if (o->level == IPPROTO_TCP && protocol == IPPROTO_MPTCP)
		return true;
	if (o->level == IPPROTO_TCP || o->level == IPPROTO_UDP)
		return type == (o->level == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM) &&
		       protocol == o->level && (family == AF_INET || family == AF_INET6);
	if (o->level == IPPROTO_IPV6 && o->name == IPV6_MULTICAST_IF && type == SOCK_STREAM)
		return false;		/* the kernel itself sets it, and lets nobody else */
	if (o->level == IPPROTO_IP)	/* for IPv4 over a socket of AF_INET6 as well */
		return family == AF_INET || family == AF_INET6;
	return !o->family || o->family == family;
}

int socket_option_add(Kcr__SocketOption ***list, size_t *count, int level, int name,
		      const void *value, size_t length)
{
	Kcr__SocketOption **more = realloc(*list, (*count + 1) * sizeof(*more)), *option;

	if (more)
		*list = more;
	option = malloc(sizeof(*option));
	if (!more || !option) {
		free(option);
		return report_errno(-ENOMEM, "saving a socket");
	}
	kcr__socket_option__init(option);
	option->level = level;
	option->name = name;
	more[(*count)++] = option;
	return file_bytes(&option->value, value, length);
}

/* Options of a new socket of the type queried last. */
static struct usual {
	int family, type, protocol;
	socklen_t length[NR_OPTIONS];	/* 0: it has none */
	char value[NR_OPTIONS][OPTION_MAX];
} usual;

static void learn_usual(int family, int type, int protocol)
{
	int fresh;

	if (usual.family == family && usual.type == type && usual.protocol == protocol)
		return;
	memset(&usual, 0, sizeof(usual));
	usual.family = family;
	usual.type = type;
	usual.protocol = protocol;
	fresh = socket(family, type | SOCK_CLOEXEC, protocol);
	if (fresh < 0 && (family == AF_INET || family == AF_INET6))	/* not for everybody */
		fresh = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	for (size_t i = 0; i < NR_OPTIONS && fresh >= 0; i++) {
		usual.length[i] = OPTION_MAX;
		if (!applies(&options[i], family, type, protocol, ~0) ||
		    getsockopt(fresh, options[i].level, options[i].name, usual.value[i],
			       &usual.length[i]))
			usual.length[i] = 0;
	}
	if (fresh >= 0)
		close(fresh);
}

/* Is it one that IP_TOS, which comes before it and is in the list, would set to another value? */
static bool follows_tos(const struct option *o, Kcr__SocketOption *const *list, size_t count)
{
	if (o->level != SOL_SOCKET || o->name != SO_PRIORITY)
		return false;
	for (size_t i = 0; i < count; i++)
		if (list[i]->level == IPPROTO_IP && list[i]->name == IP_TOS)
			return true;
	return false;
}

/* Has the program set it?  With IP_OPTIONS the kernel reports a segment smaller than can be set. */
static bool is_settable(const struct option *o, const char *now)
{
	int value;

	memcpy(&value, now, sizeof(value));
	return o->level != IPPROTO_TCP || o->name != TCP_MAXSEG || value >= MIN_SEGMENT;
}

int socket_options_save(struct file_table *t, const struct file_probe *probe, int family, int type,
			int protocol, Kcr__SocketOption ***list, size_t *count)
{
	int locked = socket_value(probe->fd, SO_BUF_LOCK), err = 0;
	struct sockaddr_storage peer;
	socklen_t peer_length = sizeof(peer);
	bool connected = !getpeername(probe->fd, (struct sockaddr *)&peer, &peer_length);

	learn_usual(family, type, protocol);
	for (size_t i = 0; i < NR_OPTIONS && !err; i++) {
		char now[OPTION_MAX] = "";
		socklen_t length = sizeof(now);

		if (!applies(&options[i], family, type, protocol, locked) ||
		    (connected && options[i].when == SINGLE) ||
		    getsockopt(probe->fd, options[i].level, options[i].name, now, &length) ||
		    !is_settable(&options[i], now))
			continue;
		if (length == sizeof(now))
			err = file_unsupported(t, "a socket with a long value of %s",
					       options[i].text);
		else if (length != usual.length[i] || memcmp(now, usual.value[i], length) ||
			 follows_tos(&options[i], *list, *count))
			err = socket_option_add(list, count, options[i].level, options[i].name,
						now, length);
	}
	return err ?: socket_filter_save(t, probe, list, count);
}

static bool force_buffer(int fd, int name, int size)
{
	int force = name == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
	bool raised = identity_raise(false), done;

	done = !setsockopt(fd, SOL_SOCKET, force, &size, sizeof(size));
	identity_lower(raised);
	return done;
}

void socket_force_buffer(int fd, int name, int size)
{
	if (!force_buffer(fd, name, size))
		setsockopt(fd, SOL_SOCKET, name, &size, sizeof(size));
}

/* The kernel's own growth of a buffer has another limit, and ends when a size is set: another socket tries. */
bool socket_grow_buffer(int fd, int name, int size)
{
	bool grows = false;
	int other;

	if (force_buffer(fd, name, size))
		return true;
	other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (other >= 0) {
		setsockopt(other, SOL_SOCKET, name, &size, sizeof(size));
		grows = socket_value(other, name) > socket_value(fd, name);
		close(other);
	}
	return grows && !setsockopt(fd, SOL_SOCKET, name, &size, sizeof(size));
}

/* With the program's rights or ours, as far as the machine's limit lets them. */
static void set_buffer(int fd, const Kcr__SocketOption *o)
{
	static bool warned[2];
	bool sends = o->name == SO_SNDBUF;
	int value, now;

	if (o->value.len != sizeof(value))
		return;
	memcpy(&value, o->value.data, sizeof(value));
	socket_force_buffer(fd, o->name, value / 2);
	now = socket_value(fd, o->name);
	if (now >= value || warned[sends])
		return;
	warned[sends] = true;
	report_warn("a socket gets a buffer (%s) of %d bytes, not %d as before: raise net.core.%s",
		    sends ? "SO_SNDBUF" : "SO_RCVBUF", now, value, sends ? "wmem_max" : "rmem_max");
}

/* Its row; NULL: none. */
static const struct option *find_option(const Kcr__SocketOption *o)
{
	for (size_t i = 0; i < NR_OPTIONS; i++)
		if (options[i].level == o->level && options[i].name == o->name)
			return &options[i];
	return NULL;
}

static unsigned int time_of(const Kcr__SocketOption *o)
{
	const struct option *row = find_option(o);

	return 1u << (row ? row->when : EARLY);
}

/*
 * Says once of each option that it could not be set; not of a connection that has it already,
 * or came without what is for binding only.
 */
static void warn_lost(int fd, const Kcr__SocketOption *o, int error)
{
	static bool warned[NR_OPTIONS];
	const struct option *row = find_option(o);
	char now[OPTION_MAX];
	socklen_t length = sizeof(now);

	if ((!getsockopt(fd, o->level, o->name, now, &length) && length == o->value.len &&
	     !memcmp(now, o->value.data, length)) ||
	    (o->level == IPPROTO_IPV6 && o->name == IPV6_V6ONLY && error == EINVAL))
		return;
	if (!row)
		report_verbose("an option of a socket (%d, %d) cannot be set", o->level, o->name);
	else if (!warned[row - options])
		report_warn("an option of a socket cannot be set again, %s: %s", row->text,
			    strerror(error));
	if (row)
		warned[row - options] = true;
}

static bool set_option(int fd, const Kcr__SocketOption *o)
{
	bool raised = identity_raise(false);
	int err = setsockopt(fd, o->level, o->name, o->value.data, o->value.len) ? errno : 0;

	identity_lower(raised);
	errno = err;
	return !err;
}

static void set_options(int fd, Kcr__SocketOption *const *list, size_t count, unsigned int times)
{
	for (size_t i = 0; i < count; i++) {
		const Kcr__SocketOption *o = list[i];

		if (!(time_of(o) & times))
			continue;
		if (o->level == SOL_SOCKET && (o->name == SO_SNDBUF || o->name == SO_RCVBUF)) {
			set_buffer(fd, o);
			continue;
		}
		if (socket_filter_is(o) || set_option(fd, o))
			continue;
		if (multicast_is(o))
			report_warn("a socket cannot join a multicast group again: %s",
				    strerror(errno));
		else
			warn_lost(fd, o, errno);
	}
}

void socket_options_set(int fd, Kcr__SocketOption *const *list, size_t count)
{
	set_options(fd, list, count, 1u << EARLY | 1u << SINGLE | 1u << BINDING);
}

static bool has_option(const struct option *row, Kcr__SocketOption *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i]->level == row->level && list[i]->name == row->name)
			return true;
	return false;
}

void socket_options_set_accepted(int fd, int family, int type, int protocol,
				 Kcr__SocketOption *const *list, size_t count)
{
	bool raised = identity_raise(false);

	learn_usual(family, type, protocol);
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		const struct option *row = &options[i];
		char now[OPTION_MAX];
		socklen_t length = sizeof(now);

		if (row->when == EARLY && applies(row, family, type, protocol, 0) &&
		    !has_option(row, list, count) &&
		    !getsockopt(fd, row->level, row->name, now, &length) &&
		    length == usual.length[i] && memcmp(now, usual.value[i], length) &&
		    setsockopt(fd, row->level, row->name, usual.value[i], length))
			report_verbose("an accepted socket keeps what it has inherited: %s", row->text);
	}
	identity_lower(raised);
	socket_options_set(fd, list, count);
}

void socket_options_set_joined(int fd, Kcr__SocketOption *const *list, size_t count)
{
	set_options(fd, list, count, 1u << EARLY | 1u << SINGLE);
}

void socket_options_finish(int fd, Kcr__SocketOption *const *list, size_t count)
{
	set_options(fd, list, count, 1u << LATE | 1u << BINDING);
}

/* Those of TCP change when something is sent, not where it comes from. */
bool socket_options_drop(Kcr__SocketOption *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (socket_filter_is(list[i]) || (list[i]->level != IPPROTO_TCP &&
						  time_of(list[i]) & (1u << LATE | 1u << BINDING)))
			return true;
	return false;
}
