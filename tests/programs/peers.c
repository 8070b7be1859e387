// SPDX-License-Identifier: GPL-2.0
/*
 * Who is at the other end of a Unix socket (SO_PEERCRED, SO_PEERGROUPS): it was root when
 * the pair was made or it listened, and another user when it connected, who has the
 * listening socket as well but may not bind its name.
 */
#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"

#define USER	1000
#define GROUP	1001

static const gid_t groups[] = { 1002, 1003 };

static struct ucred peer_of(int fd)
{
	struct ucred peer = {};
	socklen_t length = sizeof(peer);

	NEED(!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	return peer;
}

static bool is_peer(int fd, pid_t pid, uid_t uid, gid_t gid)
{
	struct ucred peer = peer_of(fd);

	fprintf(stderr, "# peer: %d, user %u, group %u\n", peer.pid, peer.uid, peer.gid);
	return peer.pid == pid && peer.uid == uid && peer.gid == gid;
}

static bool has_groups(int fd)
{
	gid_t now[8];
	socklen_t length = sizeof(now);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, now, &length) &&
	       length == sizeof(groups) && !memcmp(now, groups, length);
}

/* A process that connects as a user; another connection waits to be accepted. */
static int connect_as_user(const struct sockaddr_un *name, int pair, int up)
{
	int first = socket(AF_UNIX, SOCK_STREAM, 0), second = socket(AF_UNIX, SOCK_STREAM, 0);
	char byte;

	NEED(!setgroups(2, groups) && !setgid(GROUP) && !setuid(USER));
	NEED(!connect(first, (const struct sockaddr *)name, sizeof(*name)));
	NEED(!connect(second, (const struct sockaddr *)name, sizeof(*name)));
	NEED(write(up, "", 1) == 1);
	check_wait();
	CHECK(is_peer(first, getppid(), 0, 0) && is_peer(pair, getppid(), 0, 0));
	CHECK(read(first, &byte, 1) == 0);
	return check_end();
}

int main(int argc, char **argv)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener, server, status, pair[2], up[2];
	pid_t child;
	char byte;

	check_begin(argc, argv);
	NEED(getcwd(name.sun_path, sizeof(name.sun_path) - 8));
	strcat(name.sun_path, "/peers");
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	NEED(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 5));
	NEED(!chmod("peers", 0666) && !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && !pipe(up));
	child = fork();
	if (!child)
		_exit(connect_as_user(&name, pair[1], up[1]));
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && read(up[0], &byte, 1) == 1);
	NEED(is_peer(server, child, USER, GROUP) && has_groups(server));
	checkpoint_here();
	CHECK(is_peer(server, child, USER, GROUP) && has_groups(server));
	CHECK(is_peer(listener, getpid(), 0, 0));
	CHECK(is_peer(pair[0], getpid(), 0, 0));
	close(server);
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && is_peer(server, child, USER, GROUP) && has_groups(server));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!unlink("peers"));
	return check_end();
}
