// SPDX-License-Identifier: GPL-2.0
/*
 * A connection that has brought an urgent byte between others, `abc`, X, `def`.  The
 * arguments say how, `tcp`, `outside` (from a process that is not saved) or `unix`, and how
 * far the program has read it: not at all, `unread`, or with SO_OOBINLINE, `inline`; the urgent
 * byte only, `taken`; what is before it, `before`; or `passed`, all but the last.  `alone` is
 * the urgent byte without others, which has been read.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

static char text[16];

static void send_all(int fd, bool alone)
{
	NEED(alone || send(fd, "abc", 3, 0) == 3);
	NEED(send(fd, "X", 1, MSG_OOB) == 1);
	NEED(alone || send(fd, "def", 3, 0) == 3);
}

/* Another process connects, sends, and ends when the program goes on. */
static void connect_outside(const struct sockaddr_in *to, bool alone)
{
	pid_t child = fork();

	if (!child && !fork()) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		NEED(!connect(fd, (const struct sockaddr *)to, sizeof(*to)));
		send_all(fd, alone);
		check_wait();
		_exit(0);
	}
	if (!child)
		_exit(0);
	NEED(waitpid(child, NULL, 0) == child);
}

static int make_tcp(bool outside, bool alone)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client, server;
	socklen_t length = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!bind(listener, (struct sockaddr *)&address, sizeof(address)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&address, &length));
	if (outside) {
		connect_outside(&address, alone);
	} else {
		client = socket(AF_INET, SOCK_STREAM, 0);
		NEED(!connect(client, (struct sockaddr *)&address, sizeof(address)));
		send_all(client, alone);
	}
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && !close(listener));
	return server;
}

static int make_unix(bool alone)
{
	int probe[2], pair[2];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, probe) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (send(probe[0], "X", 1, MSG_OOB) != 1)
		check_skip("no urgent data in Unix sockets");
	NEED(!close(probe[0]) && !close(probe[1]));
	send_all(pair[0], alone);
	return pair[1];
}

static bool reads(int fd, const char *what, int flags)
{
	size_t length = strlen(what);

	return recv(fd, text, length, flags) == (ssize_t)length && !memcmp(text, what, length);
}

int main(int argc, char **argv)
{
	const char *how, *state;
	bool alone, inlined;
	int fd, on = 1;

	check_begin(argc, argv);
	NEED(argc == 5);
	how = argv[3];
	state = argv[4];
	alone = !strcmp(state, "alone");
	inlined = !strcmp(state, "inline");
	fd = *how == 'u' ? make_unix(alone) : make_tcp(*how == 'o', alone);
	check_sleep_ms(200);
	NEED(!inlined || !setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	NEED(strcmp(state, "taken") || reads(fd, "X", MSG_OOB));
	NEED(strcmp(state, "before") || reads(fd, "abc", 0));
	NEED(strcmp(state, "passed") || (reads(fd, "X", MSG_OOB) && reads(fd, "abc", 0) &&
					 reads(fd, "de", 0)));
	NEED(!alone || reads(fd, "X", MSG_OOB));
	checkpoint_here();
	if (!strcmp(state, "unread"))
		CHECK(reads(fd, "abc", 0) && reads(fd, "X", MSG_OOB) && reads(fd, "def", 0));
	else if (inlined)
		CHECK(reads(fd, "abc", 0) && reads(fd, "Xdef", MSG_WAITALL));
	else if (!strcmp(state, "taken"))
		CHECK(reads(fd, "abc", 0) && reads(fd, "def", 0));
	else if (!strcmp(state, "before"))
		CHECK(reads(fd, "X", MSG_OOB) && reads(fd, "def", 0));
	else if (!alone)
		CHECK(reads(fd, "f", 0));
	CHECK(recv(fd, text, 1, MSG_DONTWAIT) <= 0);
	return check_end();
}
