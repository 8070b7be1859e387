// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets whose peers are outside of the checkpoint: a TCP connection to the port
 * argv[3] and a Unix one to the path argv[4].  After a restart both report that the
 * peer has hung up; with argv[5] (no restart) they work on.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static void expect_hang_up(int fd)
{
	struct pollfd poller = { fd, POLLIN, 0 };
	char byte;
	ssize_t got;
	int err;

	CHECK(poll(&poller, 1, 1000) == 1);
	got = recv(fd, &byte, 1, MSG_DONTWAIT);
	err = errno;
	if (got)
		fprintf(stderr, "# recv: %zd, %s\n", got, strerror(err));
	CHECK(got == 0 || (got < 0 && err == ECONNRESET));
	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) < 0);
	CHECK(!close(fd));
}

static void expect_alive(int fd)
{
	char byte = 0;

	CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
	CHECK(recv(fd, &byte, 1, 0) == 1 && byte == 'x');	/* an echo */
}

int main(int argc, char **argv)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int tcp, local;

	check_begin(argc, argv);
	NEED(argc > 4);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(atoi(argv[3]));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", argv[4]);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	local = socket(AF_UNIX, SOCK_STREAM, 0);
	NEED(!connect(tcp, (struct sockaddr *)&in, sizeof(in)));
	NEED(!connect(local, (struct sockaddr *)&un, sizeof(un)));
	expect_alive(tcp);
	expect_alive(local);
	check_ready();
	check_wait();
	if (argc > 5) {
		expect_alive(tcp);
		expect_alive(local);
	} else {
		expect_hang_up(tcp);
		expect_hang_up(local);
	}
	return check_end();
}
