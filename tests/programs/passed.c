// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors in flight: sent to a Unix socket, not received yet and closed by their sender.
 * They come with the bytes or the message that they were sent with.
 */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static void send_with(int via, const char *text, const int *fd, int count,
		      const struct sockaddr_un *to)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
	struct iovec v = { (void *)text, strlen(text) };
	struct msghdr m = {
		.msg_name = (void *)to, .msg_namelen = to ? sizeof(*to) : 0,
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fd, count * sizeof(int));
	NEED(sendmsg(via, &m, 0) == (ssize_t)strlen(text));
	for (int i = 0; i < count; i++)
		close(fd[i]);
}

/* Reads this text and no more than `room`: the number of descriptors with it. */
static int receive(int via, const char *text, size_t room, int fd[4])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
	char data[64];
	struct iovec v = { data, room };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t n = recvmsg(via, &m, MSG_DONTWAIT);

	CHECK(n == (ssize_t)strlen(text) && !memcmp(data, text, n));
	c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(fd, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

static int make_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	NEED(fd >= 0 && write(fd, "0123456789", 10) == 10 && lseek(fd, 4, SEEK_SET) == 4);
	return fd;
}

static bool is_file(int fd)
{
	char text[8];

	return read(fd, text, 3) == 3 && !memcmp(text, "456", 3);
}

static bool holds(int fd, const char *text)
{
	char got[64];
	ssize_t n = read(fd, got, sizeof(got));

	return n == (ssize_t)strlen(text) && !memcmp(got, text, n);
}

/* ---- stream ---- */

/* A pipe with data and a file in one message, between bytes that come without. */
static void stream(void)
{
	int pair[2], pipes[2], fd[4], gone[2];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !pipe(pipes));
	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, gone));
	NEED(write(pipes[1], "in the pipe", 11) == 11);
	NEED(send(pair[0], "before", 6, 0) == 6);
	send_with(pair[0], "with", (int[]){ pipes[0], make_file("one") }, 2, NULL);
	NEED(send(pair[0], "between", 7, 0) == 7);
	send_with(pair[0], "again", (int[]){ make_file("two") }, 1, NULL);
	NEED(send(pair[0], "after", 5, 0) == 5 && !shutdown(pair[0], SHUT_WR));
	send_with(gone[0], "gone", (int[]){ make_file("three") }, 1, NULL);
	NEED(!close(gone[0]));
	checkpoint_here();
	CHECK(!receive(pair[1], "before", 6, fd));
	CHECK(receive(pair[1], "w", 1, fd) == 2 && holds(fd[0], "in the pipe") && is_file(fd[1]));
	CHECK(write(pipes[1], "more", 4) == 4 && holds(fd[0], "more"));
	CHECK(!receive(pair[1], "ith", 3, fd));
	CHECK(receive(pair[1], "betweenagain", 64, fd) == 1 && is_file(fd[0]));
	CHECK(!receive(pair[1], "after", 64, fd) && !receive(pair[1], "", 64, fd));
	CHECK(receive(gone[1], "gone", 64, fd) == 1 && is_file(fd[0]));
	CHECK(!receive(gone[1], "", 64, fd));
	CHECK(!unlink("one") && !unlink("two") && !unlink("three"));
}

/* ---- packets ---- */

/* Sequenced packets and datagrams, of a pair and to a name; some are empty. */
static void packets(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "name" };
	int pair[2][2], fd[4], named = socket(AF_UNIX, SOCK_DGRAM, 0);
	const int types[2] = { SOCK_SEQPACKET, SOCK_DGRAM };

	for (int i = 0; i < 2; i++) {
		NEED(!socketpair(AF_UNIX, types[i], 0, pair[i]));
		NEED(send(pair[i][0], "before", 6, 0) == 6);
		send_with(pair[i][0], "with", (int[]){ make_file("file") }, 1, NULL);
		NEED(!send(pair[i][0], "", 0, 0));
		send_with(pair[i][0], "", (int[]){ make_file("file") }, 1, NULL);
		NEED(send(pair[i][0], "after", 5, 0) == 5);
	}
	NEED(named >= 0 && !bind(named, (struct sockaddr *)&name, sizeof(name)));
	send_with(pair[1][0], "named", (int[]){ make_file("file") }, 1, &name);
	checkpoint_here();
	for (int i = 0; i < 2; i++) {
		CHECK(!receive(pair[i][1], "before", 64, fd));
		CHECK(receive(pair[i][1], "with", 64, fd) == 1 && is_file(fd[0]));
		CHECK(!receive(pair[i][1], "", 64, fd));
		CHECK(receive(pair[i][1], "", 64, fd) == 1 && is_file(fd[0]));
		CHECK(!receive(pair[i][1], "after", 64, fd));
	}
	CHECK(receive(named, "named", 64, fd) == 1 && is_file(fd[0]));
	CHECK(!unlink("file") && !unlink("name"));
}

/* ---- sockets ---- */

/* A socket in flight whose peer is at hand, with a descriptor in flight to it in turn. */
static void sockets(void)
{
	int outer[2], inner[2], fd[4];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, outer));
	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, inner));
	send_with(inner[0], "inner", (int[]){ make_file("file") }, 1, NULL);
	send_with(outer[0], "outer", (int[]){ inner[1] }, 1, NULL);
	checkpoint_here();
	CHECK(receive(outer[1], "outer", 64, fd) == 1);
	inner[1] = fd[0];
	CHECK(receive(inner[1], "inner", 64, fd) == 1 && is_file(fd[0]));
	CHECK(write(inner[0], "on", 2) == 2 && holds(inner[1], "on"));
	CHECK(!unlink("file"));
}

/* ---- empty ---- */

/*
 * A message that can be saved once, and the error of a socket whose peer has gone without
 * reading all, which stays if nothing waits.
 */
static void empty(void)
{
	int pair[2], gone[2];
	char byte;

	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) && !send(pair[0], "", 0, 0));
	NEED(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, gone) && send(gone[0], "x", 1, 0) == 1);
	NEED(!close(gone[1]));
	checkpoint_here();
	CHECK(!recv(pair[1], &byte, 1, MSG_DONTWAIT));
	CHECK(recv(gone[0], &byte, 1, 0) < 0 && errno == ECONNRESET);
}

/* ---- refused ---- */

/* What each process finishes for itself cannot be done in flight. */
static void refused(void)
{
	int pair[2];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	send_with(pair[0], "x", (int[]){ open("/proc/self/status", O_RDONLY) }, 1, NULL);
	checkpoint_here();
}

static const struct check checks[] = {
	{ "stream", stream },
	{ "packets", packets },
	{ "sockets", sockets },
	{ "empty", empty },
	{ "refused", refused },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
