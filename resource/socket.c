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
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/identity.h"
#include "resource/multicast.h"
#include "resource/socket_filter.h"

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK	72
#endif
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD	76
#endif
#define SEND_LOCKED	1
#define RECEIVE_LOCKED	2
#define OPTION_MAX	64

/*
 * Not TCP_FASTOPEN_CONNECT and TCP_NOTSENT_LOWAT, which would prevent connecting
 * again and filling the queues.
 */
static const struct option {
	int family;			/* 0: any */
	int level, name;
} options[] = {
	{ 0, SOL_SOCKET, SO_REUSEADDR }, { 0, SOL_SOCKET, SO_REUSEPORT },
	{ 0, SOL_SOCKET, SO_KEEPALIVE }, { 0, SOL_SOCKET, SO_BROADCAST },
	{ 0, SOL_SOCKET, SO_LINGER }, { 0, SOL_SOCKET, SO_OOBINLINE },
	{ 0, SOL_SOCKET, SO_DONTROUTE }, { 0, SOL_SOCKET, SO_PRIORITY },
	{ 0, SOL_SOCKET, SO_MARK }, { 0, SOL_SOCKET, SO_RCVLOWAT },
	{ 0, SOL_SOCKET, SO_RCVTIMEO }, { 0, SOL_SOCKET, SO_SNDTIMEO },
	{ 0, SOL_SOCKET, SO_PASSCRED }, { 0, SOL_SOCKET, SO_TIMESTAMP },
	{ 0, SOL_SOCKET, SO_TIMESTAMPNS }, { 0, SOL_SOCKET, SO_BINDTODEVICE },
	{ 0, SOL_SOCKET, SO_SNDBUF }, { 0, SOL_SOCKET, SO_RCVBUF },
	{ 0, SOL_SOCKET, SO_TIMESTAMPING }, { 0, SOL_SOCKET, SO_RXQ_OVFL },
	{ 0, SOL_SOCKET, SO_NO_CHECK }, { 0, SOL_SOCKET, SO_ZEROCOPY },
	{ 0, SOL_SOCKET, SO_MAX_PACING_RATE }, { 0, SOL_SOCKET, SO_SELECT_ERR_QUEUE },
	{ 0, SOL_SOCKET, SO_BUSY_POLL }, { 0, SOL_SOCKET, SO_PASSSEC },
	{ 0, SOL_SOCKET, SO_PASSPIDFD },
	{ 0, SOL_SOCKET, SO_PEEK_OFF },
	{ -1, IPPROTO_IP, IP_TOS }, { -1, IPPROTO_IP, IP_TTL },
	{ -1, IPPROTO_IP, IP_FREEBIND }, { -1, IPPROTO_IP, IP_TRANSPARENT },
	{ -1, IPPROTO_IP, IP_PKTINFO }, { -1, IPPROTO_IP, IP_RECVTOS },
	{ -1, IPPROTO_IP, IP_RECVTTL }, { -1, IPPROTO_IP, IP_RECVERR },
	{ -1, IPPROTO_IP, IP_MTU_DISCOVER }, { -1, IPPROTO_IP, IP_MULTICAST_TTL },
	{ -1, IPPROTO_IP, IP_MULTICAST_LOOP }, { -1, IPPROTO_IP, IP_MULTICAST_IF },
	{ -1, IPPROTO_IP, IP_MULTICAST_ALL }, { -1, IPPROTO_IP, IP_RECVOPTS },
	{ -1, IPPROTO_IP, IP_RETOPTS }, { -1, IPPROTO_IP, IP_RECVORIGDSTADDR },
	{ -1, IPPROTO_IP, IP_MINTTL }, { -1, IPPROTO_IP, IP_UNICAST_IF },
	{ -1, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
	{ -1, IPPROTO_IP, IP_RECVFRAGSIZE },
	{ AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY }, { AF_INET6, IPPROTO_IPV6, IPV6_UNICAST_HOPS },
	{ AF_INET6, IPPROTO_IPV6, IPV6_TCLASS }, { AF_INET6, IPPROTO_IPV6, IPV6_RECVPKTINFO },
	{ AF_INET6, IPPROTO_IPV6, IPV6_RECVERR }, { AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS },
	{ AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_LOOP },
	{ AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_IF }, { AF_INET6, IPPROTO_IPV6, IPV6_MULTICAST_ALL },
	{ AF_INET6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT }, { AF_INET6, IPPROTO_IPV6, IPV6_RECVTCLASS },
	{ AF_INET6, IPPROTO_IPV6, IPV6_RECVPATHMTU }, { AF_INET6, IPPROTO_IPV6, IPV6_MTU_DISCOVER },
	{ AF_INET6, IPPROTO_IPV6, IPV6_DONTFRAG }, { AF_INET6, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL },
	{ AF_INET6, IPPROTO_IPV6, IPV6_FREEBIND }, { AF_INET6, IPPROTO_IPV6, IPV6_TRANSPARENT },
	{ AF_INET6, IPPROTO_IPV6, IPV6_MINHOPCOUNT },
	{ AF_INET6, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR },
	{ AF_INET6, IPPROTO_IPV6, IPV6_UNICAST_IF },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_PKTINFO },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_BROADCAST_ERROR },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_NO_ENOBUFS },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_CAP_ACK },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_EXT_ACK },
	{ AF_NETLINK, SOL_NETLINK, NETLINK_GET_STRICT_CHK },
	{ -1, IPPROTO_TCP, TCP_NODELAY }, { -1, IPPROTO_TCP, TCP_CORK },
	{ -1, IPPROTO_TCP, TCP_KEEPIDLE }, { -1, IPPROTO_TCP, TCP_KEEPINTVL },
	{ -1, IPPROTO_TCP, TCP_KEEPCNT }, { -1, IPPROTO_TCP, TCP_SYNCNT },
	{ -1, IPPROTO_TCP, TCP_DEFER_ACCEPT }, { -1, IPPROTO_TCP, TCP_USER_TIMEOUT },
	{ -1, IPPROTO_TCP, TCP_FASTOPEN }, { -1, IPPROTO_TCP, TCP_CONGESTION },
	{ -1, IPPROTO_TCP, TCP_QUICKACK }, { -1, IPPROTO_TCP, TCP_LINGER2 },
	{ -1, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS }, { -1, IPPROTO_TCP, TCP_INQ },
	{ -1, IPPROTO_TCP, TCP_SAVE_SYN },
	{ -1, IPPROTO_UDP, UDP_CORK }, { -1, IPPROTO_UDP, UDP_SEGMENT },
	{ -1, IPPROTO_UDP, UDP_GRO }, { -1, IPPROTO_UDP, UDP_NO_CHECK6_TX },
	{ -1, IPPROTO_UDP, UDP_NO_CHECK6_RX },
};

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
	if (o->level == SOL_SOCKET && o->name == SO_SNDBUF)
		return locked < 0 ? family == AF_UNIX : locked & SEND_LOCKED;
	if (o->level == SOL_SOCKET && o->name == SO_RCVBUF)
		return locked < 0 ? false : locked & RECEIVE_LOCKED;
	if (o->level == IPPROTO_TCP || o->level == IPPROTO_UDP)
		return type == (o->level == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM) &&
		       protocol == o->level && (family == AF_INET || family == AF_INET6);
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

int socket_options_save(struct file_table *t, const struct file_probe *probe, int family, int type,
			int protocol, Kcr__SocketOption ***list, size_t *count)
{
	int locked = socket_value(probe->fd, SO_BUF_LOCK), err = 0;

	learn_usual(family, type, protocol);
	for (size_t i = 0; i < NR_OPTIONS && !err; i++) {
		char now[OPTION_MAX];
		socklen_t length = sizeof(now);

		if (!applies(&options[i], family, type, protocol, locked) ||
		    getsockopt(probe->fd, options[i].level, options[i].name, now, &length))
			continue;
		if (length != usual.length[i] || memcmp(now, usual.value[i], length))
			err = socket_option_add(list, count, options[i].level, options[i].name,
						now, length);
	}
	return err ?: socket_filter_save(t, probe, list, count);
}

void socket_force_buffer(int fd, int name, int size)
{
	int force = name == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
	bool raised = identity_raise(false);

	if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, name, &size, sizeof(size));
	identity_lower(raised);
}

static bool set_option(int fd, const Kcr__SocketOption *o)
{
	bool raised = identity_raise(false);
	int err = setsockopt(fd, o->level, o->name, o->value.data, o->value.len) ? errno : 0;

	identity_lower(raised);
	errno = err;
	return !err;
}

void socket_options_set(int fd, Kcr__SocketOption *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const Kcr__SocketOption *o = list[i];

		if (o->level == SOL_SOCKET && (o->name == SO_SNDBUF || o->name == SO_RCVBUF)) {
			int value;

			if (o->value.len == sizeof(value)) {
				memcpy(&value, o->value.data, sizeof(value));
				socket_force_buffer(fd, o->name, value / 2);
			}
			continue;
		}
		if (socket_filter_is(o) || set_option(fd, o))
			continue;
		if (multicast_is(o))
			report_warn("a socket cannot join a multicast group again: %s",
				    strerror(errno));
		else
			report_verbose("an option of a socket (%d, %d) cannot be set", o->level,
				       o->name);
	}
}
