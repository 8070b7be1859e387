// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections of a program that goes on where other addresses are.  Arguments: where it
 * listens, where its clients connect, and where it can be reached later, `-` for nowhere.
 * Two connections have been accepted, one of a client of its own and one of another process,
 * which is not saved; three wait, one of each and one whose client has closed it.
 * A fourth argument is what its listener has: `free` IP_FREEBIND, `mptcp` Multipath TCP,
 * `defer` TCP_DEFER_ACCEPT, else the name of a device.  With one of the latter two, and the second argument `-`, it waits for one
 * connection, to the port that it writes to the file `port`.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "check.h"
#include "outsider.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

#define WAIT_MS	5000

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static in_port_t port;

/* With the port that the listener has. */
static socklen_t parse(const char *text, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (strchr(text, ':')) {
		a->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
		NEED(inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1);
		return sizeof(a->v6);
	}
	a->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	NEED(inet_pton(AF_INET, text, &a->v4.sin_addr) == 1);
	return sizeof(a->v4);
}

static void set_option(int fd, const char *option)
{
	int on = 1;

	if (!strcmp(option, "mptcp"))
		return;
	if (!strcmp(option, "free"))
		NEED(!setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)));
	else if (!strcmp(option, "defer"))
		NEED(!setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on)));
	else
		NEED(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, option, strlen(option)));
}

static int make_listener(const char *at, const char *option)
{
	union address a;
	socklen_t length = parse(at, &a);
	bool mptcp = option && !strcmp(option, "mptcp");
	int fd = socket(a.any.sa_family, SOCK_STREAM, mptcp ? IPPROTO_MPTCP : 0), on = 1;

	NEED(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	if (option)
		set_option(fd, option);
	NEED(!bind(fd, &a.any, length) && !listen(fd, 10));
	NEED(!getsockname(fd, &a.any, &length));
	port = a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port;
	return fd;
}

static int connect_client(const char *to)
{
	union address a;
	socklen_t length = parse(to, &a);
	int fd = socket(a.any.sa_family, SOCK_STREAM, 0);

	NEED(fd >= 0 && !connect(fd, &a.any, length));
	check_sleep_ms(100);		/* the kernel shows ages in steps of a few milliseconds */
	return fd;
}

static void connect_from_outside(const char *to)
{
	connect_client(to);
}

static bool arrives(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, WAIT_MS) == 1;
}

static void talk(int client, int server, char byte)
{
	char got = 0;

	CHECK(send(client, &byte, 1, MSG_NOSIGNAL) == 1);
	CHECK(arrives(server) && recv(server, &got, 1, MSG_DONTWAIT) == 1 && got == byte);
	CHECK(send(server, &byte, 1, MSG_NOSIGNAL) == 1);
	CHECK(arrives(client) && recv(client, &got, 1, MSG_DONTWAIT) == 1 && got == byte);
}

/* Nothing comes any more: the other end is lost, or (false) has ended it in order. */
static void expect_end(int fd, bool lost)
{
	char byte;
	ssize_t n;
	bool reset;

	CHECK(arrives(fd));
	n = recv(fd, &byte, 1, MSG_DONTWAIT);
	reset = n < 0 && errno == ECONNRESET;
	CHECK(n == 0 || (lost && reset));
}

static int next_of(int listener)
{
	int fd = -1;

	CHECK(arrives(listener));
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	return fd;
}

/* A connection that comes from elsewhere waits. */
static void wait_for_stranger(int listener)
{
	FILE *f = fopen("port", "w");
	struct pollfd p = { .fd = listener, .events = POLLIN };

	NEED(f && fprintf(f, "%d\n", ntohs(port)) > 0 && !fclose(f));
	NEED(poll(&p, 1, -1) == 1);
	checkpoint_here();
	expect_end(next_of(listener), true);
	CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
}

static void go_on_elsewhere(int listener, const char *to, const char *later)
{
	int client = connect_client(to), server = accept(listener, NULL, NULL), lost, waiting;

	outsider(connect_from_outside, to);
	lost = accept(listener, NULL, NULL);
	waiting = connect_client(to);
	outsider(connect_from_outside, to);
	close(connect_client(to));
	fcntl(listener, F_SETFL, O_NONBLOCK);
	checkpoint_here();
	talk(client, server, 'a');
	expect_end(lost, true);
	if (*later == '-') {
		expect_end(waiting, true);
	} else {
		talk(waiting, next_of(listener), 'b');
		expect_end(next_of(listener), true);
		expect_end(next_of(listener), false);
	}
	CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
	if (*later != '-') {
		client = connect_client(later);
		talk(client, next_of(listener), 'c');
	}
}

int main(int argc, char **argv)
{
	int listener;

	check_begin(argc, argv);
	NEED(argc == 6 || argc == 7);
	listener = make_listener(argv[3], argv[6]);
	if (*argv[4] == '-') {
		fcntl(listener, F_SETFL, O_NONBLOCK);
		wait_for_stranger(listener);
	} else {
		go_on_elsewhere(listener, argv[4], argv[5]);
	}
	return check_end();
}
