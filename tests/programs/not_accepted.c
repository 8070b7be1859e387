// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that the program has not accepted yet: its own, and one of a process that is
 * not saved.  The argument is the family, `unix`, `4` or `6`, for what comes back: in the
 * order in which they were made, each with the client that made it.  For what is refused
 * it is `unix_data`, `unix_closed` or `tcp_data`; or `tcp_orphan`: one that it has accepted
 * and whose client has closed before all was sent.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "outsider.h"

#define CLIENTS	5
#define SHUT	1	/* these clients have ended their direction … */
#define CLOSED	2	/* … or closed their socket (of TCP) */
#define OUTSIDE	3	/* another process's, which is not saved */

static struct sockaddr_storage address;
static socklen_t length;

static int make_listener(const char *family)
{
	struct sockaddr_in *v4 = (void *)&address;
	struct sockaddr_in6 *v6 = (void *)&address;
	struct sockaddr_un *name = (void *)&address;
	int fd, on = 1;

	if (*family == 'u') {
		name->sun_family = AF_UNIX;
		length = offsetof(struct sockaddr_un, sun_path) + 1 +
			 sprintf(name->sun_path + 1, "kcr-not-accepted-%d", getpid());
	} else if (*family == '6') {
		*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
		length = sizeof(*v6);
	} else {
		*v4 = (struct sockaddr_in){ .sin_family = AF_INET };
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		length = sizeof(*v4);
	}
	fd = socket(address.ss_family, SOCK_STREAM, 0);
	NEED(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	NEED(!bind(fd, (struct sockaddr *)&address, length) && !listen(fd, CLIENTS));
	NEED(!getsockname(fd, (struct sockaddr *)&address, &length));
	return fd;
}

static int connect_client(void)
{
	int fd = socket(address.ss_family, SOCK_STREAM, 0);

	NEED(fd >= 0 && !connect(fd, (struct sockaddr *)&address, length));
	check_sleep_ms(100);		/* the kernel shows ages in steps of a few milliseconds */
	return fd;
}

static void connect_from_outside(const char *unused)
{
	(void)unused;
	connect_client();
}

/* One byte that only this client sends arrives at the socket that was accepted. */
static void talk(int client, int server, char byte)
{
	struct pollfd arrived = { .fd = server, .events = POLLIN };
	char got = 0;

	CHECK(send(client, &byte, 1, MSG_NOSIGNAL) == 1);
	CHECK(poll(&arrived, 1, 5000) == 1);	/* a busy kernel delivers it later */
	CHECK(recv(server, &got, 1, MSG_DONTWAIT) == 1 && got == byte);
	CHECK(send(server, &byte, 1, MSG_NOSIGNAL) == 1);
	CHECK(recv(client, &got, 1, 0) == 1 && got == byte);
}

/* A connection whose client says no more: by its end, or because it is lost. */
static void expect_end(int server, bool lost)
{
	char byte;
	ssize_t n = recv(server, &byte, 1, 0);
	bool reset = n < 0 && errno == ECONNRESET;

	CHECK(n == 0 || (lost && reset));
}

static void come_back(const char *family)
{
	int listener = make_listener(family), client[CLIENTS] = {}, server;
	bool closes = *family != 'u';	/* what a Unix socket's client leaves cannot be told */
	struct pollfd waiting = { .fd = listener, .events = POLLIN };

	for (int i = 0; i < CLIENTS; i++) {
		if (i == OUTSIDE)
			outsider(connect_from_outside, NULL);
		else
			client[i] = connect_client();
		if (i == SHUT)
			NEED(!shutdown(client[i], SHUT_WR));
		if (i == CLOSED && closes)
			NEED(!close(client[i]));
	}
	checkpoint_here();
	alarm(100);
	for (int i = 0; i < CLIENTS; i++) {
		server = accept(listener, NULL, NULL);
		CHECK(server >= 0);
		if (i == SHUT || i == OUTSIDE || (i == CLOSED && closes))
			expect_end(server, i == OUTSIDE);
		else
			talk(client[i], server, 'a' + i);
	}
	CHECK(poll(&waiting, 1, 0) == 0);
	client[0] = connect_client();
	talk(client[0], accept(listener, NULL, NULL), 'z');
}

static void refused(const char *what)
{
	int listener = make_listener(*what == 'u' ? what : "4"), client = connect_client(), server;
	bool data = strstr(what, "data");
	char got;

	if (data)
		NEED(send(client, "x", 1, 0) == 1);
	else
		NEED(!close(client));
	checkpoint_here();
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && recv(server, &got, 1, 0) == data);
}

static void orphan(void)
{
	int listener = make_listener("4"), client = connect_client(), server;
	static char data[65536];
	size_t sent = 0, got = 0;
	ssize_t n;

	server = accept(listener, NULL, NULL);
	NEED(server >= 0);
	for (int quiet = 0; quiet < 10; check_sleep_ms(5))
		for (quiet++; (n = send(client, data, sizeof(data), MSG_DONTWAIT)) > 0; quiet = 0)
			sent += n;
	NEED(!close(client));
	checkpoint_here();
	while ((n = recv(server, data, sizeof(data), 0)) > 0)
		got += n;
	CHECK(n == 0 && got == sent);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc == 4);
	if (strstr(argv[3], "_orphan"))
		orphan();
	else if (strstr(argv[3], "_data") || strstr(argv[3], "_closed"))
		refused(argv[3]);
	else
		come_back(argv[3]);
	return check_end();
}
