// SPDX-License-Identifier: GPL-2.0
/*
 * Ping and raw sockets of IPv4 and IPv6: what reaches them, what they send, and their own
 * options.  By the interface lo.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "check.h"

#define PROTOCOL	253		/* for experiments */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address make(const char *text, unsigned int port)
{
	union address a = {};

	if (strchr(text, ':')) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		NEED(inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		NEED(inet_pton(AF_INET, text, &a.v4.sin_addr) == 1);
	}
	return a;
}

static socklen_t length_of(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static int open_socket(int family, int type, int protocol)
{
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(family, type, protocol);

	if (fd < 0 && errno == EAFNOSUPPORT)
		check_skip("there is no IPv6 here");
	NEED(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	return fd;
}

static void bind_to(int fd, const char *text, unsigned int port)
{
	union address a = make(text, port);

	NEED(!bind(fd, &a.any, length_of(&a)));
}

static void connect_to(int fd, const char *text)
{
	union address a = make(text, 0);

	NEED(!connect(fd, &a.any, length_of(&a)));
}

/* To an address, or where the socket is connected. */
static void send_text(int fd, const char *to, const void *data, size_t length)
{
	union address a = to ? make(to, 0) : (union address){};

	CHECK(sendto(fd, data, length, 0, to ? &a.any : NULL, to ? length_of(&a) : 0) ==
	      (ssize_t)length);
}

/* The next packet ends in this text. */
static bool hears(int fd, const char *text)
{
	char buffer[256];
	ssize_t got = recv(fd, buffer, sizeof(buffer), 0), length = strlen(text);

	return got >= length && !memcmp(buffer + got - length, text, length);
}

static bool is_silent(int fd)
{
	return recv(fd, NULL, 0, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static unsigned int port_of(int fd)
{
	union address a = {};
	socklen_t length = sizeof(a);

	CHECK(!getsockname(fd, &a.any, &length));
	return ntohs(a.v4.sin_port);
}

/* ---- ping ---- */

static unsigned short sum(const void *data, size_t length)
{
	const uint16_t *word = data;
	unsigned int all = 0;

	for (size_t i = 0; i < length / 2; i++)
		all += word[i];
	return ~((all & 0xffff) + (all >> 16));
}

/* An echo request of IPv4 or IPv6 with two bytes in it. */
static void send_echo(int fd, const char *to, bool v6, uint16_t id, const char text[2])
{
	struct { struct icmphdr head; char text[2]; } echo = {
		.head.type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO, .head.un.echo.id = htons(id),
	};

	memcpy(echo.text, text, 2);
	echo.head.checksum = v6 ? 0 : sum(&echo, 10);
	send_text(fd, to, &echo, 10);
}

/* Root lets everybody. */
static void allow_ping(void)
{
	int fd = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY);

	NEED(fd < 0 || write(fd, "0 2147483647", 12) == 12);
	close(fd);
}

static void ping(int family, int protocol, const char *to)
{
	bool v6 = family == AF_INET6;
	int one, joined, bound;
	unsigned int id;

	allow_ping();
	one = open_socket(family, SOCK_DGRAM, protocol);
	joined = open_socket(family, SOCK_DGRAM, protocol);
	bound = open_socket(family, SOCK_DGRAM, protocol);
	send_echo(one, to, v6, 0, "aa");
	NEED(hears(one, "aa"));
	id = port_of(one);
	connect_to(joined, to);
	bind_to(bound, to, 4242);
	checkpoint_here();
	CHECK(port_of(one) == id && port_of(bound) == 4242);
	send_echo(one, to, v6, 0, "bb");
	send_echo(joined, NULL, v6, 0, "cc");
	send_echo(bound, to, v6, 0, "dd");
	CHECK(hears(one, "bb") && hears(joined, "cc") && hears(bound, "dd"));
	CHECK(is_silent(one) && is_silent(joined) && is_silent(bound));
}

static void ping4(void) { ping(AF_INET, IPPROTO_ICMP, "127.0.0.1"); }
static void ping6(void) { ping(AF_INET6, IPPROTO_ICMPV6, "::1"); }

/* ---- raw sockets of ICMP ---- */

static void icmp4(void)
{
	struct icmp_filter replies = { .data = ~(1u << ICMP_ECHOREPLY) }, after = {};
	int fd = open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	int all = open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	socklen_t length = sizeof(after);

	NEED(!setsockopt(fd, SOL_RAW, ICMP_FILTER, &replies, sizeof(replies)));
	checkpoint_here();
	CHECK(!getsockopt(fd, SOL_RAW, ICMP_FILTER, &after, &length) && after.data == replies.data);
	CHECK(is_silent(fd) && is_silent(all));
	send_echo(fd, "127.0.0.1", false, 7, "aa");
	CHECK(hears(fd, "aa") && is_silent(fd));
	CHECK(hears(all, "aa") && hears(all, "aa") && is_silent(all));
}

static void icmp6(void)
{
	struct icmp6_filter replies, after = {};
	int fd = open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	socklen_t length = sizeof(after);

	ICMP6_FILTER_SETBLOCKALL(&replies);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &replies);
	NEED(!setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &replies, sizeof(replies)));
	checkpoint_here();
	CHECK(!getsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &after, &length) &&
	      !memcmp(&after, &replies, sizeof(after)));
	send_echo(fd, "::1", true, 7, "aa");
	CHECK(hears(fd, "aa") && is_silent(fd));
}

/* ---- raw sockets of other protocols ---- */

/* A packet of the experimental protocol with a header of its own. */
static void send_whole(int fd, const char *text)
{
	struct { struct ip head; char text[8]; } packet = {
		.head = { .ip_v = 4, .ip_hl = 5, .ip_ttl = 9, .ip_p = PROTOCOL },
	};

	inet_pton(AF_INET, "127.0.0.9", &packet.head.ip_src);
	inet_pton(AF_INET, "127.0.0.1", &packet.head.ip_dst);
	strcpy(packet.text, text);
	send_text(fd, "127.0.0.1", &packet, sizeof(packet.head) + strlen(text));
}

static void header(void)
{
	int heard = open_socket(AF_INET, SOCK_RAW, PROTOCOL), on = 1, off = 0;
	int any = open_socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	int own = open_socket(AF_INET, SOCK_RAW, PROTOCOL);
	int none = open_socket(AF_INET, SOCK_RAW, IPPROTO_RAW);

	NEED(!setsockopt(own, IPPROTO_IP, IP_HDRINCL, &on, sizeof(on)));
	NEED(!setsockopt(none, IPPROTO_IP, IP_HDRINCL, &off, sizeof(off)));
	checkpoint_here();
	send_whole(any, "any");
	CHECK(hears(heard, "any"));
	send_whole(own, "own");
	CHECK(hears(heard, "own"));
	send_text(heard, "127.0.0.1", "without", 7);
	CHECK(hears(heard, "without"));
	send_text(none, "127.0.0.1", "other", 5);
	CHECK(is_silent(heard) && hears(any, "other") && is_silent(any));
}

/* From where, to where: by addresses and by a filter, which is locked. */
static void chosen(void)
{
	struct sock_filter code[] = {	/* the first byte behind the header is a y */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20), BPF_JUMP(BPF_JMP | BPF_JEQ, 'y', 0, 1),
		BPF_STMT(BPF_RET, 100), BPF_STMT(BPF_RET, 0),
	};
	struct sock_fprog program = { .len = 4, .filter = code };
	int bound = open_socket(AF_INET, SOCK_RAW, PROTOCOL);
	int joined = open_socket(AF_INET, SOCK_RAW, PROTOCOL);
	int choosy = open_socket(AF_INET, SOCK_RAW, PROTOCOL);
	int sender = open_socket(AF_INET, SOCK_RAW, PROTOCOL), on = 1;

	bind_to(bound, "127.0.0.2", 0);
	connect_to(joined, "127.0.0.3");
	bind_to(sender, "127.0.0.3", 0);
	NEED(!setsockopt(choosy, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	NEED(!setsockopt(choosy, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)));
	send_text(sender, "127.0.0.2", "lost", 4);
	checkpoint_here();
	CHECK(setsockopt(choosy, SOL_SOCKET, SO_DETACH_FILTER, &on, sizeof(on)) < 0 &&
	      errno == EPERM);
	send_text(bound, "127.0.0.1", "no", 2);
	send_text(sender, "127.0.0.2", "yes", 3);
	send_text(sender, "127.0.0.1", "y", 1);
	if (hears(bound, "lost"))	/* it was not restarted */
		CHECK(hears(bound, "yes"));
	CHECK(is_silent(bound));
	CHECK(hears(choosy, "yes") && hears(choosy, "y") && is_silent(choosy));
	CHECK(hears(joined, "y") && is_silent(joined));
	send_text(joined, NULL, "back", 4);
	CHECK(hears(sender, "back") && is_silent(sender));
}

/* The kernel puts a checksum where the program says, and verifies it there. */
static void checksum(void)
{
	int fd = open_socket(AF_INET6, SOCK_RAW, PROTOCOL), offset = 2, after = 0;
	int plain = open_socket(AF_INET6, SOCK_RAW, PROTOCOL);
	int joined = open_socket(AF_INET6, SOCK_RAW, PROTOCOL);
	uint16_t packet[4] = { 1 };
	socklen_t length = sizeof(after);

	NEED(!setsockopt(fd, SOL_RAW, IPV6_CHECKSUM, &offset, sizeof(offset)));
	connect_to(joined, "::1");
	checkpoint_here();
	CHECK(!getsockopt(fd, SOL_RAW, IPV6_CHECKSUM, &after, &length) && after == offset);
	send_text(fd, "::1", packet, sizeof(packet));
	CHECK(recv(plain, packet, sizeof(packet), 0) == sizeof(packet) && packet[1]);
	packet[1]++;
	send_text(plain, "::1", packet, sizeof(packet));
	CHECK(recv(fd, packet, sizeof(packet), 0) == sizeof(packet) && is_silent(fd));
	send_text(joined, NULL, "back", 4);
	CHECK(recv(plain, NULL, 0, MSG_TRUNC) == sizeof(packet) && hears(plain, "back"));
}

/* ---- dropped ---- */

/* Opened by root, used by the user 1000. */
static void dropped(void)
{
	int fd = open_socket(AF_INET, SOCK_RAW, PROTOCOL);

	NEED(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	NEED(!prctl(PR_SET_DUMPABLE, 1));
	checkpoint_here();
	send_text(fd, "127.0.0.1", "heard", 5);
	CHECK(hears(fd, "heard"));
	CHECK(socket(AF_INET, SOCK_RAW, PROTOCOL) < 0);
}

static const struct check checks[] = {
	{ "ping", ping4 },
	{ "ping6", ping6 },
	{ "icmp", icmp4 },
	{ "icmp6", icmp6 },
	{ "header", header },
	{ "chosen", chosen },
	{ "checksum", checksum },
	{ "dropped", dropped },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
