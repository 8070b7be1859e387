// SPDX-License-Identifier: GPL-2.0
/* Sockets of the internet: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "files.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/resource.h"

static int server;

static in_port_t port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t length = sizeof(a);

	must(!getsockname(fd, (struct sockaddr *)&a, &length));
	return a.sin_port;
}

static int inet(int type, in_port_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = port,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0), one = 1;

	must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	must(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

static int inet_connect(int type, in_port_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = port,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0);

	must(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

#define TEST_PORT	htons(23456)	/* none that the kernel gives away */

static size_t stuffed;

static void make_inet(void)
{
	int one = 1, fd, got;
	char block[4096];

	files_at(inet(SOCK_STREAM, TEST_PORT), 10);
	must(!listen(10, 9));
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 11);
	files_at(accept(10, NULL, NULL), 12);
	must(!setsockopt(11, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	files_say(11, "to the server");
	files_say(12, "to the client");
	/* Without its listening socket, one side done. */
	fd = inet(SOCK_STREAM, 0);
	must(!listen(fd, 1));
	files_at(inet_connect(SOCK_STREAM, port_of(fd)), 13);
	files_at(accept(fd, NULL, NULL), 14);
	close(fd);
	files_say(13, "over");
	must(!shutdown(13, SHUT_WR));
	/* More than the receiver has room for. */
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 15);
	files_at(accept(10, NULL, NULL), 16);
	memset(block, 's', sizeof(block));
	while ((got = send(15, block, sizeof(block), MSG_DONTWAIT)) > 0)
		stuffed += got;
	files_at(open(files_path("stuffed"), O_RDWR | O_CREAT | O_TRUNC, 0600), 17);
	must(write(17, &stuffed, sizeof(stuffed)) == sizeof(stuffed));
	/* Datagrams. */
	files_at(inet(SOCK_DGRAM, TEST_PORT), 20);
	files_at(inet_connect(SOCK_DGRAM, TEST_PORT), 21);
	files_at(socket(AF_INET6, SOCK_STREAM, 0), 22);
}

static void use_inet(void)
{
	socklen_t length = sizeof(int);
	char block[65536];
	int value, fd, got;

	must(files_hears(12, "to the server") && files_hears(11, "to the client") && files_silent(11));
	files_say(12, "on");
	must(files_hears(11, "on"));
	must(!getsockopt(11, IPPROTO_TCP, TCP_NODELAY, &value, &length) && value);
	must(port_of(12) == TEST_PORT);
	must(files_hears(14, "over") && files_hears(14, ""));
	files_say(14, "half");
	must(files_hears(13, "half") && send(13, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(pread(17, &stuffed, sizeof(stuffed), 0) == sizeof(stuffed));
	while (stuffed && (got = recv(16, block, sizeof(block), 0)) > 0) {
		for (int i = 0; i < got; i++)
			must(block[i] == 's');
		stuffed -= got;
	}
	must(!stuffed && files_silent(16));
	files_say(15, "again");
	must(files_hears(16, "again"));
	fd = inet_connect(SOCK_STREAM, TEST_PORT);
	must(accept(10, NULL, NULL) >= 0);
	close(fd);
	files_say(21, "datagram");
	must(files_hears(20, "datagram"));
	must(!getsockopt(22, SOL_SOCKET, SO_DOMAIN, &value, &length) && value == AF_INET6);
}

static in_port_t server_port;

static void make_inet_outside(void)
{
	files_at(inet_connect(SOCK_STREAM, server_port), 10);
	files_at(inet_connect(SOCK_STREAM, server_port), 11);
}

static void serve(struct file_table *t, pid_t pid)
{
	int fd = accept(server, NULL, NULL);

	(void)t;
	(void)pid;
	files_say(fd, "greeting");
	fd = accept(server, NULL, NULL);
	files_say(fd, "goodbye");
	close(fd);
}

static void use_reset(void)
{
	struct pollfd p = { .fd = 10, .events = POLLIN };
	char c;

	must(files_hears(10, "greeting"));
	must(poll(&p, 1, 0) == 1);
	must(recv(10, &c, 1, 0) <= 0);
	must(send(10, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(files_hears(11, "goodbye") && files_hears(11, ""));
}

/* Closed ones: reset by the peer, ended by both, refused. */
static void make_closed(void)
{
	struct linger reset = { .l_onoff = 1 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(23457),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd;

	files_at(inet(SOCK_STREAM, TEST_PORT), 10);
	must(!listen(10, 9));
	fd = inet_connect(SOCK_STREAM, TEST_PORT);
	files_at(accept(10, NULL, NULL), 11);
	must(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) && !close(fd));
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 12);
	fd = accept(10, NULL, NULL);
	must(!shutdown(12, SHUT_WR));
	must(files_hears(fd, ""));
	files_say(fd, "answer");
	close(fd);
	files_at(socket(AF_INET, SOCK_STREAM, 0), 13);
	must(connect(13, (struct sockaddr *)&a, sizeof(a)) == -1 && errno == ECONNREFUSED);
	usleep(20000);
}

static void use_closed(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = TEST_PORT,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char c;

	must(recv(11, &c, 1, 0) == -1 && errno == ECONNRESET);
	must(recv(11, &c, 1, 0) == 0);
	must(send(12, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(files_hears(12, "answer") && files_hears(12, ""));
	must(!connect(13, (struct sockaddr *)&a, sizeof(a)) && accept(10, NULL, NULL) >= 0);
}

static void test_closed(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_closed, .use = use_closed });
}

/*
 * At 14 an attempt to connect has been refused, at 15 one is under way: its listener has no room.  16
 * and 17, which is bound, have left their peers.
 */
static void make_attempts(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(23457),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	files_at(inet(SOCK_STREAM, TEST_PORT), 10);
	must(!listen(10, 0));
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 16);
	files_at(inet(SOCK_STREAM, 0), 17);
	must(!close(accept(10, NULL, NULL)));
	a.sin_port = TEST_PORT;
	must(!connect(17, (struct sockaddr *)&a, sizeof(a)) && !close(accept(10, NULL, NULL)));
	a.sin_port = htons(23457);
	for (int i = 16; i < 18; i++)
		must(!connect(i, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)));
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 11);
	files_at(inet(SOCK_STREAM, 0), 13);
	for (int i = 14; i < 16; i++) {
		files_at(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), i);
		must(connect(i, (struct sockaddr *)&a, sizeof(a)) == -1 && errno == EINPROGRESS);
		a.sin_port = TEST_PORT;
	}
	usleep(20000);
}

static void use_attempts(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = TEST_PORT,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd p = { .fd = 14, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0;

	must(poll(&p, 1, 0) == 1 && p.revents & POLLERR);
	must(!getsockopt(14, SOL_SOCKET, SO_ERROR, &error, &length) && error == ECONNREFUSED);
	must(fcntl(14, F_GETFL) & O_NONBLOCK);
	/* As a thread that waits in connect(2) does again. */
	must(connect(15, (struct sockaddr *)&a, sizeof(a)) == -1 && errno == ECONNREFUSED);
	/* What was not begun is not refused. */
	must(poll(&(struct pollfd){ .fd = 13 }, 1, 0) >= 0);
	must(!getsockopt(13, SOL_SOCKET, SO_ERROR, &error, &length) && !error);
	must(accept(10, NULL, NULL) >= 0 && !connect(13, (struct sockaddr *)&a, sizeof(a)));
	for (int i = 16; i < 18; i++)
		must(accept(10, NULL, NULL) >= 0 && !connect(i, (struct sockaddr *)&a, sizeof(a)));
}

static void test_attempts(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_attempts, .use = use_attempts });
}

#define SHARED_PORT	htons(23458)

/* Two that share a port: the kernel decides who gets which connection. */
static void make_shared_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = SHARED_PORT,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd p[2];
	int one = 1;

	for (int i = 0; i < 2; i++) {
		files_at(socket(AF_INET, SOCK_STREAM, 0), 10 + i);
		must(!setsockopt(10 + i, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
		must(!bind(10 + i, (struct sockaddr *)&a, sizeof(a)) && !listen(10 + i, 9));
		p[i] = (struct pollfd){ .fd = 10 + i, .events = POLLIN };
	}
	for (int i = 0; i < 16; i += 2) {
		files_at(inet_connect(SOCK_STREAM, SHARED_PORT), 20 + i);
		must(poll(p, 2, 1000) == 1);
		files_at(accept(p[0].revents ? 10 : 11, NULL, NULL), 21 + i);
		files_say(20 + i, "hello");
	}
}

static void use_shared_port(void)
{
	for (int i = 0; i < 16; i += 2) {
		must(files_hears(21 + i, "hello"));
		files_say(21 + i, "answer");
		must(files_hears(20 + i, "answer") && port_of(21 + i) == SHARED_PORT);
	}
	for (int i = 10; i < 12; i++) {
		must(!fcntl(i, F_SETFL, O_NONBLOCK));
		must(accept(i, NULL, NULL) == -1 && errno == EAGAIN);
	}
}

/* It gets a connection only with something in it. */
static void make_deferred(void)
{
	int seconds = 30;

	files_at(inet(SOCK_STREAM, TEST_PORT), 10);
	must(!setsockopt(10, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)));
	must(!listen(10, 9));
	files_at(inet_connect(SOCK_STREAM, TEST_PORT), 11);
	files_say(11, "hello");
	files_at(accept(10, NULL, NULL), 12);
	must(files_hears(12, "hello"));
}

static void use_deferred(void)
{
	files_say(11, "on");
	must(files_hears(12, "on") && !fcntl(10, F_SETFL, O_NONBLOCK));
	must(accept(10, NULL, NULL) == -1 && errno == EAGAIN);
}

static void test_listeners(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_shared_port, .use = use_shared_port });
	files_cycle(&(struct files_test){ .make = make_deferred, .use = use_deferred });
}

/* Options that programs set, each with a value that a new socket has not. */
static const struct {
	int fd, level, name, value;
} options[] = {
	{ 10, SOL_SOCKET, SO_KEEPALIVE, 1 }, { 10, SOL_SOCKET, SO_ZEROCOPY, 1 },
	{ 10, SOL_SOCKET, SO_TIMESTAMPING, 8 }, { 10, SOL_SOCKET, SO_MAX_PACING_RATE, 1000000 },
	{ 10, IPPROTO_TCP, TCP_LINGER2, 7 }, { 10, IPPROTO_TCP, TCP_INQ, 1 },
	{ 10, IPPROTO_TCP, TCP_KEEPIDLE, 77 }, { 10, IPPROTO_IP, IP_TOS, 16 },
	{ 11, SOL_SOCKET, SO_RXQ_OVFL, 1 }, { 11, SOL_SOCKET, SO_NO_CHECK, 1 },
	{ 11, IPPROTO_IP, IP_MULTICAST_IF, 0x0100007f }, { 11, IPPROTO_IP, IP_MULTICAST_ALL, 0 },
	{ 11, IPPROTO_IP, IP_RECVORIGDSTADDR, 1 }, { 11, IPPROTO_IP, IP_MINTTL, 3 },
	{ 11, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1 }, { 11, IPPROTO_UDP, UDP_GRO, 1 },
	{ 11, IPPROTO_UDP, UDP_SEGMENT, 1000 }, { 11, IPPROTO_UDP, UDP_CORK, 1 },
	{ 12, IPPROTO_IPV6, IPV6_MULTICAST_IF, 1 }, { 12, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0 },
	{ 12, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1 }, { 12, IPPROTO_IPV6, IPV6_RECVTCLASS, 1 },
	{ 12, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO },
	{ 12, IPPROTO_IPV6, IPV6_DONTFRAG, 1 }, { 12, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0 },
	{ 12, IPPROTO_IPV6, IPV6_MINHOPCOUNT, 5 }, { 12, IPPROTO_IPV6, IPV6_FREEBIND, 1 },
	{ 12, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1 },
};

static void make_options(void)
{
	files_at(socket(AF_INET, SOCK_STREAM, 0), 10);
	files_at(socket(AF_INET, SOCK_DGRAM, 0), 11);
	files_at(socket(AF_INET6, SOCK_DGRAM, 0), 12);
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!setsockopt(options[i].fd, options[i].level, options[i].name, &options[i].value,
				sizeof(int)) || errno == ENOPROTOOPT)
			continue;	/* a kernel may be without */
		fprintf(stderr, "option %d, %d: %m\n", options[i].level, options[i].name);
		must(false);
	}
}

static void use_options(void)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		int value[2] = { -1 };
		socklen_t length = sizeof(value);

		if (getsockopt(options[i].fd, options[i].level, options[i].name, value, &length) ?
		    errno == ENOPROTOOPT : *value == options[i].value)
			continue;
		fprintf(stderr, "option %d, %d is %d\n", options[i].level, options[i].name, *value);
		must(false);
	}
}

static void test_options(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_options, .use = use_options });
}

static void test_inet(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_inet, .use = use_inet });
	files_cycle(&(struct files_test){ .make = make_inet, .use = use_inet });
	server = inet(SOCK_STREAM, 0);
	server_port = port_of(server);
	assert_int_equal(listen(server, 5), 0);
	files_cycle(&(struct files_test){ .make = make_inet_outside, .use = use_reset,
					  .before_save = serve });
	close(server);
}

/* However many checkpoints a process makes: each has the time for data on their way out. */
static void test_awaited(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct file_table *t = file_table_new(false);
		int looks = 0;

		while (file_table_await_sent(t))
			looks++;
		assert_int_equal(looks, FILE_SEND_MS);
		file_table_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inet), cmocka_unit_test(test_options), cmocka_unit_test(test_closed),
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_listeners), cmocka_unit_test(test_awaited),
	};

	return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
