// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sockets: each is set on a new socket, to another value than it has, and must
 * have that value later.  What this kernel does not have, or not for this type of socket,
 * is left out.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/un.h>

#include "../../resource/option_names.h"
#include "check.h"

struct option {
	int level, name, value;
	int fd, set;		/* what it is then; fd -1: there is none */
	const char *text;
};

#define O(level, name, value)	{ level, name, value, -1, 0, #name }

/* What there is of `list` in this type of socket; at least `least`. */
static void set_options(struct option *list, size_t count, int family, int type, size_t least)
{
	size_t nr_set = 0;

	for (size_t i = 0; i < count; i++) {
		struct option *o = &list[i];
		socklen_t length = sizeof(int);
		int fd = socket(family, type, 0), usual = 0;

		NEED(fd >= 0);
		if (!getsockopt(fd, o->level, o->name, &usual, &length) &&
		    !setsockopt(fd, o->level, o->name, &o->value, sizeof(int)))
			o->fd = fd;
		length = sizeof(int);		/* there may have been no IP_OPTIONS */
		NEED(o->fd < 0 || !getsockopt(fd, o->level, o->name, &o->set, &length));
		if (o->fd >= 0 && o->set != usual) {
			nr_set++;
		} else {
			fprintf(stderr, "# left out: %s\n", o->text);
			o->fd = -1;
			close(fd);
		}
	}
	NEED(nr_set >= least);
}

static void check_options(const struct option *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = &list[i];
		socklen_t length = sizeof(int);
		int value = 0;

		if (o->fd >= 0 && (getsockopt(o->fd, o->level, o->name, &value, &length) ||
				   value != o->set)) {
			fprintf(stderr, "# %s is %d, was %d\n", o->text, value, o->set);
			check_failures++;
		}
	}
}

static void keep_options(struct option *list, size_t count, int family, int type, size_t least)
{
	set_options(list, count, family, type, least);
	checkpoint_here();
	check_options(list, count);
}

#define COUNT(list)	(sizeof(list) / sizeof(*(list)))

/* ---- dual ---- */

/* What a socket of AF_INET6 has for IPv4. */
static void options_dual(void)
{
	struct option list[] = {
		O(IPPROTO_IP, IP_PKTINFO, 1), O(IPPROTO_IP, IP_RECVTOS, 1),
		O(IPPROTO_IP, IP_RECVERR, 1), O(IPPROTO_IP, IP_TOS, 0x10),
		O(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO), O(IPPROTO_IP, IP_TTL, 7),
		O(IPPROTO_IP, IP_RECVTTL, 1),
	};

	keep_options(list, COUNT(list), AF_INET6, SOCK_DGRAM, COUNT(list));
}

/* ---- tcp, udp, unix ---- */

static void options_tcp(void)
{
	struct option list[] = {
		O(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 4096), O(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
		O(IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1), O(IPPROTO_TCP, TCP_WINDOW_CLAMP, 9000),
		O(IPPROTO_TCP, TCP_TX_DELAY, 1000), O(IPPROTO_TCP, TCP_MAXSEG, 700),
		O(SOL_SOCKET, SO_INCOMING_CPU, 0), O(SOL_SOCKET, SO_PREFER_BUSY_POLL, 1),
		O(SOL_SOCKET, SO_BUSY_POLL_BUDGET, 5), O(SOL_SOCKET, SO_TXREHASH, 0),
		O(IPPROTO_IP, IP_LOCAL_PORT_RANGE, 50000 << 16 | 40000),
		O(IPPROTO_IP, IP_OPTIONS, 0x01010101), O(SOL_SOCKET, SO_BROADCAST, 1),
		O(SOL_SOCKET, SO_DONTROUTE, 1), O(SOL_SOCKET, SO_RCVLOWAT, 100),
		O(SOL_SOCKET, SO_TIMESTAMP, 1), O(SOL_SOCKET, SO_BUSY_POLL, 50),
		O(SOL_SOCKET, SO_REUSEPORT, 1), O(SOL_SOCKET, SO_RXQ_OVFL, 1),
		O(SOL_SOCKET, SO_NO_CHECK, 1), O(SOL_SOCKET, SO_SELECT_ERR_QUEUE, 1),
		O(SOL_SOCKET, SO_NOFCS, 1), O(IPPROTO_TCP, TCP_CORK, 1),
		O(IPPROTO_TCP, TCP_KEEPIDLE, 100), O(IPPROTO_TCP, TCP_KEEPINTVL, 20),
		O(IPPROTO_TCP, TCP_KEEPCNT, 4), O(IPPROTO_TCP, TCP_SYNCNT, 3),
		O(IPPROTO_TCP, TCP_DEFER_ACCEPT, 5), O(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000),
		O(IPPROTO_TCP, TCP_FASTOPEN, 5), O(IPPROTO_TCP, TCP_QUICKACK, 0),
		O(IPPROTO_TCP, TCP_LINGER2, 7), O(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1),
		O(IPPROTO_TCP, TCP_SAVE_SYN, 1), O(IPPROTO_TCP, TCP_INQ, 1),
	};

	keep_options(list, COUNT(list), AF_INET, SOCK_STREAM, 24);
}

static void options_inet(void)
{
	struct option list[] = {
		O(IPPROTO_IP, IP_FREEBIND, 1), O(IPPROTO_IP, IP_TRANSPARENT, 1),
		O(IPPROTO_IP, IP_MULTICAST_TTL, 7), O(IPPROTO_IP, IP_MULTICAST_LOOP, 0),
		O(IPPROTO_IP, IP_MULTICAST_ALL, 0), O(IPPROTO_IP, IP_UNICAST_IF, htonl(1)),
		O(IPPROTO_IP, IP_RECVOPTS, 1), O(IPPROTO_IP, IP_RETOPTS, 1),
		O(IPPROTO_IP, IP_RECVORIGDSTADDR, 1), O(IPPROTO_IP, IP_MINTTL, 3),
		O(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1), O(IPPROTO_IP, IP_RECVFRAGSIZE, 1),
		O(SOL_SOCKET, SO_PEEK_OFF, 3), O(IPPROTO_UDP, UDP_CORK, 1),
		O(IPPROTO_UDP, UDP_SEGMENT, 1000), O(IPPROTO_UDP, UDP_GRO, 1),
	};

	keep_options(list, COUNT(list), AF_INET, SOCK_DGRAM, 14);
}

static void options_inet6(void)
{
	struct option list[] = {
		O(IPPROTO_IPV6, IPV6_V6ONLY, 1), O(IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9),
		O(IPPROTO_IPV6, IPV6_TCLASS, 32), O(IPPROTO_IPV6, IPV6_RECVPKTINFO, 1),
		O(IPPROTO_IPV6, IPV6_RECVERR, 1), O(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 5),
		O(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0), O(IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0),
		O(IPPROTO_IPV6, IPV6_MULTICAST_IF, 1), O(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1),
		O(IPPROTO_IPV6, IPV6_RECVTCLASS, 1), O(IPPROTO_IPV6, IPV6_RECVPATHMTU, 1),
		O(IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO), O(IPPROTO_IPV6, IPV6_DONTFRAG, 1),
		O(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0), O(IPPROTO_IPV6, IPV6_FREEBIND, 1),
		O(IPPROTO_IPV6, IPV6_TRANSPARENT, 1), O(IPPROTO_IPV6, IPV6_MINHOPCOUNT, 3),
		O(IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1), O(IPPROTO_IPV6, IPV6_UNICAST_IF, htonl(1)),
		O(IPPROTO_UDP, UDP_NO_CHECK6_TX, 1), O(IPPROTO_UDP, UDP_NO_CHECK6_RX, 1),
	};

	keep_options(list, COUNT(list), AF_INET6, SOCK_DGRAM, 20);
}

static void options_netlink(void)
{
	struct option list[] = {
		O(SOL_NETLINK, NETLINK_PKTINFO, 1), O(SOL_NETLINK, NETLINK_BROADCAST_ERROR, 1),
		O(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1), O(SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, 1),
		O(SOL_NETLINK, NETLINK_CAP_ACK, 1), O(SOL_NETLINK, NETLINK_EXT_ACK, 1),
		O(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1),
	};

	keep_options(list, COUNT(list), AF_NETLINK, SOCK_RAW, 5);
}

static void options_udp(void)
{
	struct option list[] = {
		O(IPPROTO_UDP, UDP_ENCAP, 2), O(SOL_SOCKET, SO_INCOMING_CPU, 0),
		O(SOL_SOCKET, SO_RCVMARK, 1), O(SOL_SOCKET, SO_RCVPRIORITY, 1),
		O(IPPROTO_IP, IP_PASSSEC, 1), O(IPPROTO_IP, IP_RECVERR_RFC4884, 1),
		O(IPPROTO_IP, IP_CHECKSUM, 1), O(IPPROTO_IPV6, IPV6_RECVHOPOPTS, 1),
		O(IPPROTO_IPV6, IPV6_RECVRTHDR, 1), O(IPPROTO_IPV6, IPV6_RECVDSTOPTS, 1),
		O(IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1), O(IPPROTO_IPV6, IPV6_FLOWINFO, 1),
		O(IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1),
		O(IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, 0x0001),
		O(IPPROTO_IPV6, IPV6_RECVERR_RFC4884, 1),
		O(IPPROTO_IPV6, IPV6_ROUTER_ALERT_ISOLATE, 1), O(SOL_SOCKET, SO_DEBUG, 1),
		O(SOL_SOCKET, SO_RESERVE_MEM, 8192), O(SOL_SOCKET, SO_TIMESTAMPING_NEW, 8),
	};

	keep_options(list, COUNT(list), AF_INET6, SOCK_DGRAM, 8);
}

/* ---- accepted ---- */

static int value_of(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	return getsockopt(fd, level, name, &value, &length) ? -1 : value;
}

static void set(int fd, int level, int name, int value)
{
	NEED(!setsockopt(fd, level, name, &value, sizeof(value)));
}

/* An accepted socket has not got the options of its listener that it had switched off. */
static void options_accepted(void)
{
	const int tcp[][2] = { { SOL_SOCKET, SO_KEEPALIVE }, { SOL_SOCKET, SO_OOBINLINE },
			       { IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_IP, IP_TOS } };
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener[2] = { socket(AF_INET, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_STREAM, 0) };
	int client[2] = { socket(AF_INET, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_STREAM, 0) }, server[2];
	struct sockaddr *at[2] = { (struct sockaddr *)&address, (struct sockaddr *)&name };
	socklen_t length[2] = { sizeof(address), sizeof(name.sun_family) };
	socklen_t room[2] = { sizeof(address), sizeof(name) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (size_t i = 0; i < COUNT(tcp); i++)
		set(listener[0], tcp[i][0], tcp[i][1], 16);
	set(listener[0], SOL_SOCKET, SO_REUSEADDR, 1);
	set(listener[1], SOL_SOCKET, SO_PASSCRED, 1);
	for (int i = 0; i < 2; i++) {
		NEED(!bind(listener[i], at[i], length[i]) && !listen(listener[i], 1));
		NEED(!getsockname(listener[i], at[i], &room[i]));
		NEED(!connect(client[i], at[i], room[i]));
		server[i] = accept(listener[i], NULL, NULL);
		NEED(server[i] >= 0);
	}
	for (size_t i = 0; i < COUNT(tcp); i++)
		set(server[0], tcp[i][0], tcp[i][1], 0);
	set(server[1], SOL_SOCKET, SO_PASSCRED, 0);
	checkpoint_here();
	for (size_t i = 0; i < COUNT(tcp); i++) {
		CHECK(!value_of(server[0], tcp[i][0], tcp[i][1]));
		CHECK(value_of(listener[0], tcp[i][0], tcp[i][1]) > 0);
	}
	CHECK(!value_of(server[1], SOL_SOCKET, SO_PASSCRED));
	CHECK(value_of(listener[1], SOL_SOCKET, SO_PASSCRED) == 1);
}

/* ---- order ---- */

/* IP_TOS sets SO_PRIORITY, too. */
static void options_order(void)
{
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		set(fd[i], IPPROTO_IP, IP_TOS, 16);
		set(fd[i], SOL_SOCKET, SO_PRIORITY, i * 3);
	}
	checkpoint_here();
	for (int i = 0; i < 2; i++)
		CHECK(value_of(fd[i], IPPROTO_IP, IP_TOS) == 16 &&
		      value_of(fd[i], SOL_SOCKET, SO_PRIORITY) == i * 3);
}

/* ---- buffer ---- */

/* Larger than the machine may allow later. */
static void options_buffer(void)
{
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		set(fd[i], SOL_SOCKET, SO_RCVBUF, 3000000);
	}
	checkpoint_here();
	for (int i = 0; i < 2; i++)
		CHECK(value_of(fd[i], SOL_SOCKET, SO_RCVBUF) > 0);
}

/* ---- filled ---- */

/*
 * A limit on what is not sent, or a small buffer, does not keep a connection with much in it from
 * coming back, nor is the buffer larger then.
 */
static void options_filled(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), value = 1, server, client;
	socklen_t length = sizeof(address);
	static char data[50000];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!bind(listener, (struct sockaddr *)&address, sizeof(address)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&address, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	NEED(send(client, data, sizeof(data), 0) == sizeof(data));
	NEED(!setsockopt(client, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, sizeof(value)));
	set(client, SOL_SOCKET, SO_SNDBUF, 6000);
	checkpoint_here();
	if (value_of(server, SOL_SOCKET, SO_BUF_LOCK) != -1) {	/* Linux 5.15 */
		CHECK(value_of(client, SOL_SOCKET, SO_SNDBUF) == 12000);
		CHECK(value_of(server, SOL_SOCKET, SO_BUF_LOCK) == 0);
	}
	CHECK(recv(server, data, sizeof(data), MSG_WAITALL) == sizeof(data));
	length = sizeof(value);
	value = 0;
	CHECK(!getsockopt(client, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length) && value == 1);
}

static void options_packet(void)
{
	struct option list[] = {
		O(SOL_PACKET, PACKET_VERSION, TPACKET_V3), O(SOL_PACKET, PACKET_AUXDATA, 1),
		O(SOL_PACKET, PACKET_ORIGDEV, 1), O(SOL_PACKET, PACKET_RESERVE, 64),
		O(SOL_PACKET, PACKET_LOSS, 1), O(SOL_PACKET, PACKET_VNET_HDR, 1),
		O(SOL_PACKET, PACKET_VNET_HDR_SZ, 12), O(SOL_PACKET, PACKET_TIMESTAMP, 64),
		O(SOL_PACKET, PACKET_TX_HAS_OFF, 1), O(SOL_PACKET, PACKET_QDISC_BYPASS, 1),
		O(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1), O(SOL_SOCKET, SO_MARK, 5),
		O(SOL_SOCKET, SO_PRIORITY, 3), O(SOL_SOCKET, SO_TIMESTAMPNS, 1),
		O(SOL_SOCKET, SO_RCVBUF, 50000), O(SOL_SOCKET, SO_SNDBUF, 60000),
	};

	keep_options(list, COUNT(list), AF_PACKET, SOCK_RAW, 12);
}

static void options_unix(void)
{
	struct option list[] = { O(SOL_SOCKET, SO_PASSRIGHTS, 0), O(SOL_SOCKET, SO_INQ, 1) };

	keep_options(list, COUNT(list), AF_UNIX, SOCK_STREAM, 0);
}

/* ---- device ---- */

/* Two sockets for an interface only, the argument, which may be missing later. */
static void options_device(void)
{
	char name[16];
	int fd[2];

	for (int i = 0; i < 2; i++) {
		socklen_t length = sizeof(name);

		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		NEED(fd[i] >= 0 && !setsockopt(fd[i], SOL_SOCKET, SO_BINDTODEVICE, check_argument,
					       strlen(check_argument)));
		NEED(!getsockopt(fd[i], SOL_SOCKET, SO_BINDTODEVICE, name, &length) && length);
	}
	checkpoint_here();
	for (int i = 0; i < 2; i++)
		CHECK(fcntl(fd[i], F_GETFD) >= 0);
}

/* ---- hung_up ---- */

/* The peer, which is no process of the tree, has sent this, and its end if `ends`. */
static int connect_outside(const void *data, size_t size, int buffer, bool ends)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, peer;
	socklen_t length = sizeof(a);

	NEED(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&a, &length));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!buffer || !setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)));
	NEED(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	peer = accept(listener, NULL, NULL);
	NEED(peer >= 0 && send(peer, data, size, 0) == (ssize_t)size);
	NEED(!ends || !shutdown(peer, SHUT_WR));
	NEED(check_leave_orphan() && !close(peer) && !close(listener));
	return fd;
}

/*
 * Options that keep packets of this machine from a socket do not keep it from being hung up,
 * and what it had received from being read.  The argument is an interface.
 */
static void options_hung_up(void)
{
	int fd = connect_outside("hello", 5, 0, false), hops = 255, value = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	socklen_t length = sizeof(value);
	char text[8];

	check_sleep_ms(100);
	NEED(!setsockopt(fd, IPPROTO_IP, IP_MINTTL, &hops, sizeof(hops)));
	NEED(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, check_argument, strlen(check_argument)));
	checkpoint_here();
	CHECK(poll(&p, 1, 5000) == 1 && recv(fd, text, 5, 0) == 5 && !memcmp(text, "hello", 5));
	CHECK(poll(&p, 1, 5000) == 1 && recv(fd, text, 5, 0) < 0 && errno == ECONNRESET);
	CHECK(!getsockopt(fd, IPPROTO_IP, IP_MINTTL, &value, &length) && value == hops);
}

/* More than has room on its way: it must not wait for the peer to read it. */
static void tell_lost_peer(int fd, const char *data, size_t size)
{
	struct timeval limit = { .tv_sec = 20 };

	NEED(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	for (size_t at = 0; at < 4 * size; at += size)
		CHECK(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

/* Some, and then an error, in time. */
static void read_part(int fd, char *got, size_t size)
{
	struct timeval limit = { .tv_sec = 20 };
	size_t at = 0;
	ssize_t n;
	int err;

	NEED(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	while ((n = recv(fd, got + at, size - at, 0)) > 0)
		at += n;
	err = n < 0 ? errno : 0;
	CHECK(err == ECONNRESET);
	CHECK(at > 0 && at < size && check_filled(got, at, 3));
}

static bool is_told(const char *what)
{
	return check_argument && !strcmp(check_argument, what);
}

/*
 * More unread data than a new socket has room for, in a buffer that the kernel has made large: all is
 * read, and the reset comes behind it.  The argument: "told": the program sends a lot first;
 * "ended": so it does a little, and the end of the stream comes instead; "cut": not all comes;
 * "hops": nor here, as the socket takes nothing that is sent later.
 */
static void options_unread(void)
{
	static char data[3000000], got[sizeof(data)];
	bool ends = is_told("ended");
	int fd, unlocked = 0, hops = 255;

	check_fill(data, sizeof(data), 3);
	fd = connect_outside(data, sizeof(data), sizeof(data), ends);
	if (setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof(unlocked)))
		check_skip("this kernel does not let go of a buffer");
	NEED(recv(fd, got, sizeof(got), MSG_PEEK | MSG_WAITALL) == sizeof(got));
	NEED(!is_told("hops") || !setsockopt(fd, IPPROTO_IP, IP_MINTTL, &hops, sizeof(hops)));
	memset(got, 0, sizeof(got));
	checkpoint_here();
	if (is_told("cut") || is_told("hops")) {
		read_part(fd, got, sizeof(got));
		return;
	}
	if (check_argument)
		tell_lost_peer(fd, data, ends ? 10 : sizeof(data));
	for (size_t at = 0, n = 50000; at < sizeof(got); at += n) {
		check_sleep_ms(2);
		if (recv(fd, got + at, n, MSG_WAITALL) != (ssize_t)n)
			break;
	}
	CHECK(check_filled(got, sizeof(got), 3));
	CHECK(ends ? !recv(fd, got, 1, 0) : recv(fd, got, 1, 0) < 0 && errno == ECONNRESET);
}

/* ---- unsaved ---- */

static int connect_udp(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9),
				 .sin_addr.s_addr = inet_addr(address) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	NEED(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

/*
 * What is lost with a warning: an error that has not been read, half a datagram (MSG_MORE), the
 * peer of a socket whose network, of the address that is the argument, may be missing later.
 */
/* An accepted connection whose SYN packet nobody has read. */
static void keep_syn(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t length = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	NEED(!setsockopt(listener, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof(on)));
	NEED(!bind(listener, (struct sockaddr *)&address, sizeof(address)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&address, &length));
	NEED(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	NEED(accept(listener, NULL, NULL) >= 0);
}

static void options_unsaved(void)
{
	int failed = connect_udp("127.0.0.1"), half = connect_udp("127.0.0.1"), on = 1;
	int far = connect_udp(check_argument);

	NEED(!setsockopt(failed, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)));
	keep_syn();
	NEED(send(failed, "lost", 4, 0) == 4 && send(half, "half", 4, MSG_MORE) == 4);
	checkpoint_here();
	CHECK(send(half, "whole", 5, 0) == 5);
	CHECK(send(far, "any", 3, 0) < 0 && errno == EDESTADDRREQ);
}

/* ---- values ---- */

/* Options that are no numbers. */
struct value {
	int fd, family, type, level, name;
	socklen_t length;
	char bytes[64];
	const char *text;
};

#define V(family, type, level, name, length, bytes)	\
	{ -1, family, type, level, name, length, bytes, #name }

static void options_values(void)
{
	struct value list[] = {
		V(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_TXTIME, 8, "\1\0\0\0\2\0\0"),
		V(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_TIMESTAMP_NEW, 4, "\1\0\0"),
		V(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_TIMESTAMPNS_NEW, 4, "\1\0\0"),
		V(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_WIFI_STATUS, 4, "\1\0\0"),
		V(AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_FASTOPEN_KEY, 16, "a key, 16 bytes"),
		V(AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_RTO_MAX_MS, 4, "\0\100\0"),
		V(AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_CONGESTION, 16, "reno"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_RTHDR, 24, "\0\2\4\0\0\0\0\0\x20\1\xd\xb8"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_2292PKTINFO, 4, "\1\0\0"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_2292HOPLIMIT, 4, "\1\0\0"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_2292RTHDR, 4, "\1\0\0"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_DSTOPTS, 8, "\0\0\1\4\0\0\0"),
		V(AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_HOPOPTS, 8, "\0\0\1\4\0\0\0"),
	};
	size_t count = 0;

	for (size_t i = 0; i < COUNT(list); i++) {
		struct value *v = &list[i];

		v->fd = socket(v->family, v->type, 0);
		NEED(v->fd >= 0);
		if (setsockopt(v->fd, v->level, v->name, v->bytes, v->length)) {
			fprintf(stderr, "# left out: %s: %s\n", v->text, strerror(errno));
			close(v->fd);
			v->fd = -1;
		}
		count += v->fd >= 0;
	}
	NEED(count >= 8);
	checkpoint_here();
	for (size_t i = 0; i < COUNT(list); i++) {
		const struct value *v = &list[i];
		socklen_t length = v->length;
		char now[64];

		if (v->fd >= 0 && (getsockopt(v->fd, v->level, v->name, now, &length) ||
				   length != v->length || memcmp(now, v->bytes, length))) {
			fprintf(stderr, "# %s is another\n", v->text);
			check_failures++;
		}
	}
}

static const struct check checks[] = {
	{ "hung_up", options_hung_up },
	{ "unread", options_unread },
	{ "unsaved", options_unsaved },
	{ "values", options_values },
	{ "device", options_device },
	{ "tcp", options_tcp },
	{ "udp", options_udp },
	{ "filled", options_filled },
	{ "accepted", options_accepted },
	{ "order", options_order },
	{ "buffer", options_buffer },
	{ "packet", options_packet },
	{ "unix", options_unix },
	{ "inet", options_inet },
	{ "inet6", options_inet6 },
	{ "netlink", options_netlink },
	{ "dual", options_dual },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
