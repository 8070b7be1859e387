// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs of Unix sockets (stream, datagram, sequenced packets) with unread contents in
 * both directions, one half-closed, one whose peer has gone; used by two processes.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

static int pairs[3][2];
static const int types[3] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

int main(int argc, char **argv)
{
	int half[2], gone[2], status, size = 0;
	socklen_t length = sizeof(size);
	char text[64];
	pid_t child;

	check_begin(argc, argv);
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
	return check_end();
}
