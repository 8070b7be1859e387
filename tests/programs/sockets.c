// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"

/* ---- tcp ---- */

/*
 * TCP inside: a connection of two descriptors of the program with bytes under way in
 * both directions, and a listening socket that still accepts.
 */
static void fd_tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener, client, server, again, on = 1, value = 0;
	char text[64];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	NEED(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof(address)));
	NEED(!listen(listener, 5) && !getsockname(listener, (struct sockaddr *)&address, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	NEED(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && send(client, "to the server", 13, 0) == 13);
	NEED(send(server, "to the client", 13, 0) == 13);
	check_sleep_ms(100);
	checkpoint_here();
	CHECK(recv(server, text, 64, 0) == 13 && !memcmp(text, "to the server", 13));
	CHECK(recv(client, text, 64, 0) == 13 && !memcmp(text, "to the client", 13));
	CHECK(send(client, "more", 4, 0) == 4 && recv(server, text, 64, MSG_WAITALL & 0) == 4);
	CHECK(send(server, "less", 4, 0) == 4 && recv(client, text, 64, 0) == 4);
	length = sizeof(value);
	CHECK(!getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, &length) && value);
	again = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(again, (struct sockaddr *)&address, sizeof(address)));
	CHECK(accept(listener, NULL, NULL) >= 0);
	CHECK(!close(client) && recv(server, text, 64, 0) == 0);
}

/* ---- tcp_port ---- */

/*
 * A server without SO_REUSEADDR, at a port that one of its connections, which it has
 * closed, still occupies.
 */
static void fd_tcp_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener, client, server;
	char byte;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	NEED(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof(address)));
	NEED(!listen(listener, 5) && !getsockname(listener, (struct sockaddr *)&address, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	NEED(client >= 0 && !connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && !close(server) && recv(client, &byte, 1, 0) == 0 && !close(client));
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	checkpoint_here();
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && send(client, "x", 1, 0) == 1 && recv(server, &byte, 1, 0) == 1);
}

/* ---- udp ---- */

/* UDP sockets: bound, connected, with a datagram that has arrived. */
static void fd_udp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET }, now;
	socklen_t length = sizeof(address);
	int bound, connected;
	char text[64];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bound = socket(AF_INET, SOCK_DGRAM, 0);
	connected = socket(AF_INET, SOCK_DGRAM, 0);
	NEED(bound >= 0 && !bind(bound, (struct sockaddr *)&address, sizeof(address)));
	NEED(!getsockname(bound, (struct sockaddr *)&address, &length));
	NEED(!connect(connected, (struct sockaddr *)&address, sizeof(address)));
	checkpoint_here();
	length = sizeof(now);
	CHECK(!getsockname(bound, (struct sockaddr *)&now, &length));
	CHECK(now.sin_port == address.sin_port);
	CHECK(send(connected, "datagram", 8, 0) == 8);
	CHECK(recv(bound, text, 64, 0) == 8 && !memcmp(text, "datagram", 8));
}

/* ---- peek_off ---- */

static int peek_offset(int fd)
{
	socklen_t length = sizeof(int);
	int value = -2;

	CHECK(!getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &value, &length));
	return value;
}

/* UDP sockets that peek at a moving place (SO_PEEK_OFF), one of them in what may be lost. */
static void fd_peek_off(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd[2], sender = socket(AF_INET, SOCK_DGRAM, 0), start = 0;
	char text[64];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		address.sin_port = 0;
		NEED(fd[i] >= 0 && !bind(fd[i], (struct sockaddr *)&address, sizeof(address)));
		NEED(!getsockname(fd[i], (struct sockaddr *)&address, &length));
		NEED(!setsockopt(fd[i], SOL_SOCKET, SO_PEEK_OFF, &start, sizeof(start)));
	}
	NEED(sendto(sender, "abc", 3, 0, (struct sockaddr *)&address, length) == 3);
	NEED(recv(fd[1], text, 2, MSG_PEEK) == 2 && peek_offset(fd[1]) == 2);
	checkpoint_here();
	CHECK(peek_offset(fd[0]) == 0);
	recv(fd[1], text, 64, MSG_DONTWAIT);
	CHECK(peek_offset(fd[1]) == 0);
	CHECK(sendto(sender, "datagram", 8, 0, (struct sockaddr *)&address, length) == 8);
	CHECK(recv(fd[1], text, 4, MSG_PEEK) == 4 && peek_offset(fd[1]) == 4);
}

/* ---- unix ---- */

static int pairs[3][2];
static const int types[3] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

/*
 * Pairs of Unix sockets (stream, datagram, sequenced packets) with unread contents in
 * both directions, one half-closed, one whose peer has gone; used by two processes.
 */
static void fd_unix(void)
{
	int half[2], gone[2], status, size = 0;
	socklen_t length = sizeof(size);
	char text[64];
	pid_t child;

	for (int i = 0; i < 3; i++) {
		NEED(!socketpair(AF_UNIX, types[i], 0, pairs[i]));
		NEED(send(pairs[i][0], "hello", 5, 0) == 5 && send(pairs[i][0], "you", 3, 0) == 3);
		NEED(send(pairs[i][1], "back", 4, 0) == 4);
	}
	NEED(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, half));
	NEED(send(half[0], "bye", 3, 0) == 3 && !shutdown(half[0], SHUT_WR));
	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, gone));
	NEED(send(gone[0], "late", 4, 0) == 4 && !close(gone[0]));
	size = 50000;
	NEED(!setsockopt(pairs[0][0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	NEED(!getsockopt(pairs[0][0], SOL_SOCKET, SO_SNDBUF, &size, &length));
	child = fork();
	if (!child) {
		check_wait();
		for (int i = 0; i < 3; i++)
			CHECK(recv(pairs[i][0], text, 64, 0) == 4 && !memcmp(text, "back", 4));
		CHECK(send(pairs[0][0], "child", 5, 0) == 5);
		_exit(check_end());
	}
	check_ready();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(recv(pairs[0][1], text, 64, 0) == 13 && !memcmp(text, "helloyouchild", 13));
	for (int i = 1; i < 3; i++) {
		CHECK(recv(pairs[i][1], text, 64, 0) == 5 && !memcmp(text, "hello", 5));
		CHECK(recv(pairs[i][1], text, 64, 0) == 3 && !memcmp(text, "you", 3));
		CHECK(send(pairs[i][1], "again", 5, 0) == 5);
		CHECK(recv(pairs[i][0], text, 64, 0) == 5);
	}
	CHECK(recv(half[1], text, 64, 0) == 3 && recv(half[1], text, 64, 0) == 0);
	CHECK(send(half[1], "on", 2, 0) == 2 && recv(half[0], text, 64, 0) == 2);
	CHECK(send(half[0], "no", 2, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	CHECK(fcntl(half[0], F_GETFL) & O_NONBLOCK);
	CHECK(recv(gone[1], text, 64, 0) == 4 && recv(gone[1], text, 64, 0) == 0);
	length = sizeof(size);
	CHECK(!getsockopt(pairs[0][0], SOL_SOCKET, SO_SNDBUF, &status, &length) && status == size);
}

/* ---- unix_listen ---- */

static int listener(struct sockaddr_un *name, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	NEED(fd >= 0 && !bind(fd, (struct sockaddr *)name, length) && !listen(fd, 5));
	return fd;
}

static void talk(int listener, const struct sockaddr_un *name, socklen_t length)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0), server;
	char byte;

	CHECK(!connect(client, (const struct sockaddr *)name, length));
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && write(client, "x", 1) == 1 && read(server, &byte, 1) == 1);
	close(client);
	close(server);
}

/*
 * A listening Unix socket with a name in the file system and one with an abstract
 * name, and a connection that it has accepted.
 */
static void fd_unix_listen(void)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX }, abstract = { .sun_family = AF_UNIX };
	socklen_t abstract_length;
	int a, b, client, server;
	char text[8];

	snprintf(path.sun_path, sizeof(path.sun_path), "/tmp/kcr-unix.%d", getpid());
	abstract_length = offsetof(struct sockaddr_un, sun_path) + 1 +
			  sprintf(abstract.sun_path + 1, "kcr-abstract-%d", getpid());
	a = listener(&path, sizeof(path));
	b = listener(&abstract, abstract_length);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	NEED(!connect(client, (struct sockaddr *)&path, sizeof(path)));
	server = accept(a, NULL, NULL);
	NEED(server >= 0 && write(client, "abc", 3) == 3);
	checkpoint_here();
	CHECK(read(server, text, 8) == 3 && !memcmp(text, "abc", 3));
	CHECK(write(server, "de", 2) == 2 && read(client, text, 8) == 2);
	talk(a, &path, sizeof(path));
	talk(b, &abstract, abstract_length);
	CHECK(!unlink(path.sun_path));
}

/* ---- netlink ---- */

static char buffer[65536];

static uint32_t port_of(int fd)
{
	struct sockaddr_nl local;
	socklen_t length = sizeof(local);

	CHECK(!getsockname(fd, (struct sockaddr *)&local, &length));
	return local.nl_pid;
}

/* Changes the loopback interface: everybody in the group is told. */
static void change_mtu(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!ioctl(fd, SIOCGIFMTU, &request));
	request.ifr_mtu--;
	CHECK(!ioctl(fd, SIOCSIFMTU, &request));
	close(fd);
}

static void expect(int fd, int type)
{
	const struct nlmsghdr *head = (const void *)buffer;

	CHECK(recv(fd, buffer, sizeof(buffer), 0) > (ssize_t)sizeof(*head));
	CHECK(head->nlmsg_type == type);
}

static void ask(int fd)
{
	struct { struct nlmsghdr head; struct rtgenmsg all; } list = {
		{ sizeof(list), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC },
	};

	CHECK(send(fd, &list, sizeof(list), 0) == sizeof(list));
	expect(fd, RTM_NEWLINK);
	CHECK(((struct nlmsghdr *)buffer)->nlmsg_pid == port_of(fd));
	do
		CHECK(recv(fd, buffer, sizeof(buffer), 0) > 0);
	while (((struct nlmsghdr *)buffer)->nlmsg_type != NLMSG_DONE && !check_failures);
}

/*
 * A netlink socket that hears of every change of a network interface, by a group,
 * and one that asks for their list.
 */
static void fd_netlink(void)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int events, list, one = 1, value = 0;
	socklen_t length = sizeof(value);
	uint32_t port;

	events = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	list = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	NEED(events >= 0 && !bind(events, (struct sockaddr *)&local, sizeof(local)));
	NEED(!setsockopt(list, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)));
	ask(list);
	change_mtu();
	expect(events, RTM_NEWLINK);
	port = port_of(events);
	checkpoint_here();
	CHECK(port_of(events) == port);
	CHECK(!getsockopt(list, SOL_NETLINK, NETLINK_EXT_ACK, &value, &length) && value == 1);
	CHECK(fcntl(list, F_GETFL) & O_NONBLOCK && fcntl(events, F_GETFD) == FD_CLOEXEC);
	ask(list);
	change_mtu();
	expect(events, RTM_NEWLINK);
}

/* ---- owner ---- */

static pthread_barrier_t barrier;
static pid_t tid;

static void *idle(void *argument)
{
	tid = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);		/* who has ended owns nothing */
	return argument;
}

static bool is_owned(int fd, int type, pid_t pid)
{
	struct f_owner_ex owner = {};

	return !fcntl(fd, F_GETOWN_EX, &owner) && (int)owner.type == type && owner.pid == pid;
}

/* Who gets the signals of a descriptor: a thread, the process, its group (F_SETOWN_EX). */
static void fd_owner(void)
{
	pid_t pids[4];
	const int types[] = { F_OWNER_TID, F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP };
	pthread_t thread;
	int fd[4];

	NEED(!pthread_barrier_init(&barrier, NULL, 2));
	NEED(!pthread_create(&thread, NULL, idle, NULL));
	pthread_barrier_wait(&barrier);
	pids[0] = tid;
	pids[1] = pids[2] = getpid();
	pids[3] = getpgrp();
	for (int i = 0; i < 4; i++) {
		struct f_owner_ex owner = { types[i], pids[i] };

		fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		NEED(fd[i] >= 0 && !fcntl(fd[i], F_SETOWN_EX, &owner));
	}
	checkpoint_here();
	for (int i = 0; i < 4; i++)
		CHECK(is_owned(fd[i], types[i], pids[i]));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

/* One whose signals go to the parent, which is not saved. */
static void fd_owner_outside(void)
{
	struct f_owner_ex owner = { F_OWNER_PID, getppid() };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	NEED(fd >= 0 && !fcntl(fd, F_SETOWN_EX, &owner));
	checkpoint_here();
}

/* ---- filter ---- */

/* A filter that lets pass what begins with 'k'. */
static void attach_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'k', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	NEED(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

/* A filter still keeps out what it did, but not what was there before it. */
static void fd_filter(void)
{
	int pair[2], locked[2], on = 1;
	char text[64];

	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) && !socketpair(AF_UNIX, SOCK_DGRAM, 0, locked));
	NEED(send(pair[0], "x before", 8, 0) == 8);
	attach_filter(pair[1]);
	attach_filter(locked[1]);
	NEED(!setsockopt(locked[1], SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)));
	checkpoint_here();
	CHECK(recv(pair[1], text, 64, MSG_DONTWAIT) == 8 && !memcmp(text, "x before", 8));
	send(pair[0], "x after", 7, MSG_DONTWAIT);
	CHECK(send(pair[0], "k after", 7, MSG_DONTWAIT) == 7);
	CHECK(recv(pair[1], text, 64, MSG_DONTWAIT) == 7 && *text == 'k');
	send(locked[0], "x", 1, MSG_DONTWAIT);
	CHECK(send(locked[0], "k", 1, MSG_DONTWAIT) == 1);
	CHECK(recv(locked[1], text, 64, MSG_DONTWAIT) == 1 && *text == 'k');
	CHECK(setsockopt(locked[1], SOL_SOCKET, SO_DETACH_FILTER, &on, sizeof(on)) == -1);
	CHECK(!setsockopt(pair[1], SOL_SOCKET, SO_DETACH_FILTER, &on, sizeof(on)));
}

/* ---- udp_shut ---- */

/* UDP sockets that were shut: to read, both ways, and to write. */
static void fd_udp_shut(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(9) };
	const int how[3] = { SHUT_RD, SHUT_RDWR, SHUT_WR };
	int fd[3];
	char byte;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 3; i++) {
		fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		NEED(!connect(fd[i], (struct sockaddr *)&address, sizeof(address)));
		NEED(!shutdown(fd[i], how[i]));
	}
	NEED(!recv(fd[0], &byte, 1, 0) && !recv(fd[1], &byte, 1, 0));
	checkpoint_here();
	alarm(10);		/* or they wait for ever */
	CHECK(!recv(fd[0], &byte, 1, 0) && !recv(fd[1], &byte, 1, 0));
	CHECK(recv(fd[2], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(send(fd[0], "x", 1, MSG_NOSIGNAL) == 1);
	CHECK(send(fd[1], "x", 1, MSG_NOSIGNAL) == -1);
	CHECK(send(fd[2], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

/* ---- tcp_shut ---- */

/* A TCP connection that one side reads no more from, with data in it, and that it writes to. */
static void fd_tcp_shut(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener, client, server;
	char text[8];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	NEED(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof(address)));
	NEED(!listen(listener, 5) && !getsockname(listener, (struct sockaddr *)&address, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	NEED(client >= 0 && !connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && send(client, "abc", 3, 0) == 3);
	check_sleep_ms(100);
	NEED(!shutdown(server, SHUT_RD));
	checkpoint_here();
	alarm(10);		/* or it waits for ever */
	CHECK(recv(server, text, 8, 0) == 3 && !memcmp(text, "abc", 3));
	CHECK(recv(server, text, 8, 0) == 0);
	CHECK(send(server, "de", 2, 0) == 2 && recv(client, text, 8, 0) == 2);
	CHECK(recv(client, text, 8, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

/* ---- multicast ---- */

/* The filter of a membership: the number of sources, -1: it is no member. */
static int count_sources(int fd, int level, const struct sockaddr_storage *group, uint32_t *mode)
{
	struct group_filter f = { .gf_interface = 1, .gf_group = *group, .gf_numsrc = 1 };
	socklen_t length = sizeof(f);

	if (getsockopt(fd, level, MCAST_MSFILTER, &f, &length))
		return -1;
	*mode = f.gf_fmode;
	return f.gf_numsrc;
}

/* Groups that were joined on the loopback interface: all of it, and one source only. */
static void fd_multicast(void)
{
	struct group_req all = { .gr_interface = 1 }, six = { .gr_interface = 1 };
	struct group_source_req one = { .gsr_interface = 1 };
	struct sockaddr_in *a = (void *)&all.gr_group, *b = (void *)&one.gsr_group;
	struct sockaddr_in *from = (void *)&one.gsr_source;
	struct sockaddr_in6 *c = (void *)&six.gr_group;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), fd6 = socket(AF_INET6, SOCK_DGRAM, 0);
	int both = socket(AF_INET6, SOCK_DGRAM, 0);
	uint32_t mode;

	*a = *b = *from = (struct sockaddr_in){ .sin_family = AF_INET };
	a->sin_addr.s_addr = inet_addr("239.1.2.3");
	b->sin_addr.s_addr = inet_addr("239.1.2.4");
	from->sin_addr.s_addr = inet_addr("127.0.0.9");
	c->sin6_family = AF_INET6;
	NEED(inet_pton(AF_INET6, "ff02::1234", &c->sin6_addr) == 1);
	NEED(!setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &all, sizeof(all)));
	NEED(!setsockopt(fd, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, &one, sizeof(one)));
	NEED(!setsockopt(fd6, IPPROTO_IPV6, MCAST_JOIN_GROUP, &six, sizeof(six)));
	NEED(!setsockopt(both, IPPROTO_IP, MCAST_JOIN_GROUP, &all, sizeof(all)));
	checkpoint_here();
	CHECK(count_sources(fd, IPPROTO_IP, &all.gr_group, &mode) == 0 && mode == MCAST_EXCLUDE);
	CHECK(count_sources(fd, IPPROTO_IP, &one.gsr_group, &mode) == 1 && mode == MCAST_INCLUDE);
	CHECK(count_sources(fd6, IPPROTO_IPV6, &six.gr_group, &mode) == 0 && mode == MCAST_EXCLUDE);
	CHECK(count_sources(both, IPPROTO_IP, &all.gr_group, &mode) == 0 && mode == MCAST_EXCLUDE);
}

/* ---- unix_named_end ---- */

/* A pair of datagram sockets of which one got a name later: both directions stay. */
static void fd_unix_named_end(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX }, now = {};
	socklen_t length = sizeof(name), now_length = sizeof(now);
	char text[8];
	int pair[2];

	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	NEED(!bind(pair[0], (struct sockaddr *)&name, sizeof(name.sun_family)));
	NEED(!getsockname(pair[0], (struct sockaddr *)&name, &length));
	NEED(send(pair[0], "to b", 4, 0) == 4 && send(pair[1], "to a", 4, 0) == 4);
	checkpoint_here();
	CHECK(!getsockname(pair[0], (struct sockaddr *)&now, &now_length));
	CHECK(now_length == length && !memcmp(&now, &name, length));
	for (int i = 0; i < 2; i++) {
		CHECK(recv(pair[1], text, 8, MSG_DONTWAIT) == 4 && !memcmp(text, "to b", 4));
		CHECK(recv(pair[0], text, 8, MSG_DONTWAIT) == 4 && !memcmp(text, "to a", 4));
		CHECK(send(pair[0], "to b", 4, 0) == 4 && send(pair[1], "to a", 4, 0) == 4);
	}
}

/* ---- unix_outside ---- */

/* Connected to the socket of another program, the argument, which may be gone later. */
static void fd_unix_outside(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	strncpy(name.sun_path, check_argument, sizeof(name.sun_path) - 1);
	NEED(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
	checkpoint_here();
	CHECK(fcntl(fd, F_GETFD) >= 0);
}

static const struct check checks[] = {
	{ "tcp", fd_tcp },
	{ "tcp_port", fd_tcp_port },
	{ "udp", fd_udp },
	{ "peek_off", fd_peek_off },
	{ "unix", fd_unix },
	{ "unix_listen", fd_unix_listen },
	{ "unix_named_end", fd_unix_named_end },
	{ "unix_outside", fd_unix_outside },
	{ "netlink", fd_netlink },
	{ "owner", fd_owner },
	{ "owner_outside", fd_owner_outside },
	{ "filter", fd_filter },
	{ "udp_shut", fd_udp_shut },
	{ "tcp_shut", fd_tcp_shut },
	{ "multicast", fd_multicast },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
