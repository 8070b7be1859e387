// SPDX-License-Identifier: GPL-2.0
/* Names and addresses that have changed since they were bound, or are shared. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../resource/option_names.h"
#include "check.h"

static int bind_unix(const char *path, int type)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	NEED(fd >= 0 && !bind(fd, (struct sockaddr *)&name, sizeof(name)));
	NEED(type == SOCK_DGRAM || !listen(fd, 5));
	return fd;
}

static int connect_unix(const char *path, int type)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	return !connect(fd, (struct sockaddr *)&name, sizeof(name)) ? fd : -1;
}

static bool has_name(int fd, const char *path)
{
	struct sockaddr_un name = {};
	socklen_t length = sizeof(name);

	return !getsockname(fd, (struct sockaddr *)&name, &length) && !strcmp(name.sun_path, path);
}

/* The connection that is made reaches this listening socket. */
static bool reaches(const char *path, int listener)
{
	struct pollfd waits = { .fd = listener, .events = POLLIN };

	return connect_unix(path, SOCK_STREAM) >= 0 && poll(&waits, 1, 0) == 1;
}

/* ---- same_name ---- */

/* Sockets that had one name in turn: the last has it, and all say so. */
static void same_name(void)
{
	int listener[3], datagrams[2], client, server = -1;
	char byte;

	for (int i = 0; i < 3; i++) {
		listener[i] = bind_unix("name", SOCK_STREAM);
		if (i == 1) {
			client = connect_unix("name", SOCK_STREAM);
			server = accept(listener[1], NULL, NULL);
			NEED(client >= 0 && server >= 0);
		}
		if (i < 2)
			NEED(!unlink("name"));
	}
	datagrams[0] = bind_unix("datagrams", SOCK_DGRAM);
	client = connect_unix("datagrams", SOCK_DGRAM);
	NEED(client >= 0 && !unlink("datagrams"));
	datagrams[1] = bind_unix("datagrams", SOCK_DGRAM);
	NEED(send(client, "x", 1, 0) == 1);
	checkpoint_here();
	for (int i = 0; i < 3; i++)
		CHECK(has_name(listener[i], "name"));
	CHECK(has_name(server, "name") && reaches("name", listener[2]));
	CHECK(has_name(datagrams[0], "datagrams") && has_name(datagrams[1], "datagrams"));
	CHECK(recv(datagrams[0], &byte, 1, MSG_DONTWAIT) == 1);
	CHECK(send(client, "y", 1, 0) == 1 && recv(datagrams[0], &byte, 1, MSG_DONTWAIT) == 1);
	CHECK(recv(datagrams[1], &byte, 1, MSG_DONTWAIT) == -1);
	CHECK(!unlink("name") && !unlink("datagrams"));
}

/* ---- removed_name ---- */

/* A socket whose node has been removed. */
static void removed_name(void)
{
	int listener = bind_unix("name", SOCK_STREAM);

	NEED(!unlink("name"));
	checkpoint_here();
	CHECK(has_name(listener, "name") && access("name", F_OK));
}

/* ---- other_folder ---- */

/* A relative name, and another working folder since; the connection shows the name, too. */
static void other_folder(void)
{
	int listener, client, server;

	NEED(!mkdir("inner", 0700) && !chdir("inner"));
	listener = bind_unix("./name", SOCK_STREAM);
	client = connect_unix("name", SOCK_STREAM);
	server = accept(listener, NULL, NULL);
	NEED(client >= 0 && server >= 0 && !chdir(".."));
	checkpoint_here();
	CHECK(has_name(listener, "./name") && has_name(server, "./name"));
	CHECK(send(client, "x", 1, 0) == 1 && recv(server, (char[1]){}, 1, 0) == 1);
	CHECK(access("name", F_OK) && reaches("inner/name", listener));
	CHECK(!unlink("inner/name") && !rmdir("inner"));
}

/* ---- removed_folder ---- */

/* A socket whose folder has been removed, in another that has been, too. */
static void removed_folder(void)
{
	int listener, client, server;

	NEED(!mkdir("gone", 0700) && !mkdir("gone/too", 0700));
	listener = bind_unix("gone/too/name", SOCK_STREAM);
	client = connect_unix("gone/too/name", SOCK_STREAM);
	server = accept(listener, NULL, NULL);
	NEED(client >= 0 && server >= 0);
	NEED(!unlink("gone/too/name") && !rmdir("gone/too") && !rmdir("gone"));
	checkpoint_here();
	CHECK(has_name(listener, "gone/too/name") && has_name(server, "gone/too/name"));
	CHECK(send(client, "x", 1, 0) == 1 && recv(server, (char[1]){}, 1, 0) == 1);
	CHECK(access("gone", F_OK) && errno == ENOENT);
}

/* ---- replaced_fifo ---- */

/* A FIFO whose name a socket has by now. */
static void replaced_fifo(void)
{
	int fifo, listener;
	char text[8];

	NEED(!mkfifo("name", 0600));
	fifo = open("name", O_RDWR);
	NEED(fifo >= 0 && write(fifo, "abc", 3) == 3 && !unlink("name"));
	listener = bind_unix("name", SOCK_STREAM);
	checkpoint_here();
	CHECK(read(fifo, text, 8) == 3 && !memcmp(text, "abc", 3));
	CHECK(reaches("name", listener) && !unlink("name"));
}

/* ---- freebind ---- */

static int bind_free(int type, int option)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(4242) };
	int fd = socket(AF_INET, type, 0), on = 1, off = 0;

	a.sin_addr.s_addr = inet_addr("192.0.2.7");
	NEED(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	NEED(!setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)));
	NEED(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	NEED(!setsockopt(fd, IPPROTO_IP, IP_FREEBIND, option ? &on : &off, sizeof(on)));
	return fd;
}

static bool has_address(int fd, const char *address, int port)
{
	struct sockaddr_in a = {};
	socklen_t length = sizeof(a);

	return !getsockname(fd, (struct sockaddr *)&a, &length) &&
	       a.sin_addr.s_addr == inet_addr(address) && a.sin_port == htons(port);
}

/* Addresses that this machine does not have (yet). */
static void freebind(void)
{
	int fd[4] = { bind_free(SOCK_STREAM, 1), bind_free(SOCK_STREAM, 0),
		      bind_free(SOCK_DGRAM, 1), bind_free(SOCK_DGRAM, 0) }, value = 0;
	socklen_t length = sizeof(value);

	NEED(!listen(fd[0], 5));
	checkpoint_here();
	for (int i = 0; i < 4; i++) {
		CHECK(has_address(fd[i], "192.0.2.7", 4242));
		CHECK(!getsockopt(fd[i], IPPROTO_IP, IP_FREEBIND, &value, &length));
		CHECK(value == !(i & 1));
	}
}

/* ---- no_port ---- */

/* Sockets that have an address, and get their port later; some have left the option since. */
static void no_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd[4], on = 1, off = 0, value = 0;
	socklen_t length = sizeof(value);

	a.sin_addr.s_addr = inet_addr("127.0.0.5");
	for (int i = 0; i < 4; i++) {
		fd[i] = socket(AF_INET, i < 2 ? SOCK_STREAM : SOCK_DGRAM, 0);
		NEED(!setsockopt(fd[i], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)));
		NEED(!bind(fd[i], (struct sockaddr *)&a, sizeof(a)));
		NEED(i & 1 || !setsockopt(fd[i], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &off,
					  sizeof(off)));
		NEED(has_address(fd[i], "127.0.0.5", 0));
	}
	checkpoint_here();
	for (int i = 0; i < 4; i++) {
		CHECK(has_address(fd[i], "127.0.0.5", 0));
		CHECK(!getsockopt(fd[i], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &value, &length));
		CHECK(value == (i & 1));
	}
}

/* ---- reuseport ---- */

static int bind_shared(int type, int port, bool listens)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, type, 0), on = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)));
	NEED(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	NEED(!listens || !listen(fd, 5));
	return fd;
}

/* Groups of sockets at one port; some have left the option since. */
static void reuseport(void)
{
	int tcp[4], udp[3], off = 0, value = 0;
	socklen_t length = sizeof(value);

	for (int i = 0; i < 4; i++)
		tcp[i] = bind_shared(SOCK_STREAM, 4243, i < 3);
	for (int i = 0; i < 3; i++)
		udp[i] = bind_shared(SOCK_DGRAM, 4243, false);
	NEED(!setsockopt(tcp[0], SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off)));
	NEED(!setsockopt(udp[0], SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off)));
	checkpoint_here();
	for (int i = 0; i < 4; i++) {
		CHECK(has_address(tcp[i], "127.0.0.1", 4243));
		CHECK(!getsockopt(tcp[i], SOL_SOCKET, SO_REUSEPORT, &value, &length));
		CHECK(value == !!i);
	}
	for (int i = 0; i < 3; i++)
		CHECK(has_address(udp[i], "127.0.0.1", 4243));
}

/* ---- senders ---- */

static const char *const senders[] = { "\0abstract", "removed", "" };

static void send_as(int i, const struct sockaddr_un *to)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	size_t length = i == 0 ? 9 : strlen(senders[i]);

	memcpy(name.sun_path, senders[i], length);
	NEED(fd >= 0 && (!length || !bind(fd, (struct sockaddr *)&name,
					  offsetof(struct sockaddr_un, sun_path) + length)));
	NEED(sendto(fd, "x", 1, 0, (const struct sockaddr *)to, sizeof(*to)) == 1);
	close(fd);
	NEED(!length || !name.sun_path[0] || !unlink(name.sun_path));
}

/* Who is said to have sent the next datagram, or byte of a stream, by which name? */
static struct ucred receive(int fd, struct sockaddr_un *name, size_t *length, char *byte)
{
	char control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec v = { byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_name = name,
			    .msg_namelen = name ? sizeof(*name) : 0, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct ucred from = {};

	CHECK(recvmsg(fd, &m, MSG_DONTWAIT) == 1);
	*length = m.msg_namelen;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&from, CMSG_DATA(c), sizeof(from));
	return from;
}

/* Datagrams of senders that are gone: their names, and their IDs, for which `option` asks. */
static void check_senders(int option)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "receiver" }, name;
	int receiver = bind_unix("receiver", SOCK_DGRAM), on = 1, set = -1, status;
	socklen_t size = sizeof(set);
	struct ucred from;
	size_t length;
	pid_t child;
	char byte;

	NEED(!chmod("receiver", 0777) && !chmod(".", 0777));
	if (setsockopt(receiver, SOL_SOCKET, option, &on, sizeof(on)))
		check_skip("this kernel tells no pidfds of senders");
	child = fork();
	if (!child) {
		NEED(!setgid(1001) && !setuid(1000));
		for (int i = 0; i < 3; i++)
			send_as(i, &to);
		_exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && !status);
	checkpoint_here();
	CHECK(!getsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &set, &size));
	CHECK(set == (option == SO_PASSCRED));
	CHECK(!setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	for (int i = 0; i < 3; i++) {
		from = receive(receiver, &name, &length, &byte);
		CHECK(from.pid == child && from.uid == 1000 && from.gid == 1001);
		CHECK(!senders[i][0] || !strncmp(name.sun_path, senders[i], 8));
		CHECK(i || (length == 11 && !memcmp(name.sun_path, senders[0], 9)));
		CHECK(i < 2 || length <= offsetof(struct sockaddr_un, sun_path));
	}
	CHECK(access("removed", F_OK) && !unlink("receiver"));
}

static void unread_senders(void)
{
	check_senders(SO_PASSCRED);
}

static void pidfd_senders(void)
{
	check_senders(SO_PASSPIDFD);
}

/* Bytes of a stream from senders that are gone, more than are sent at once (SO_PASSCRED). */
static void stream_senders(void)
{
	static char data[60000];
	struct ucred from = {};
	int pair[2], on = 1, status;
	size_t length;
	pid_t child;

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	NEED(!setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	check_fill(data, sizeof(data), 7);
	child = fork();
	if (!child) {
		NEED(!setgid(1001) && !setuid(1000));
		NEED(send(pair[0], data, sizeof(data), 0) == sizeof(data));
		_exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && !status);
	NEED(send(pair[0], "x", 1, 0) == 1);
	checkpoint_here();
	for (size_t i = 0; i < sizeof(data); i++) {
		from = receive(pair[1], NULL, &length, &data[i]);
		if (from.pid != child || from.uid != 1000 || from.gid != 1001)
			break;
	}
	CHECK(from.pid == child && from.uid == 1000 && from.gid == 1001);
	CHECK(check_filled(data, sizeof(data), 7));
	from = receive(pair[1], NULL, &length, data);
	CHECK(from.uid == 0 && from.pid == getpid() && *data == 'x');
}

/* ---- datagrams ---- */

static int connect_bound(int fd, const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&name, sizeof(name));
}

/* With a descriptor, if it is not -1. */
static void send_to(int fd, const char *path, char byte, int passed)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c = (struct cmsghdr *)control;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	if (passed >= 0) {
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &passed, sizeof(passed));
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
	}
	NEED(sendmsg(fd, &m, MSG_DONTWAIT) == 1);
}

static bool receives(int fd, char byte)
{
	char got = 0;

	return recv(fd, &got, 1, MSG_DONTWAIT) == 1 && got == byte;
}

static int max_unread(void)
{
	char text[32];

	return atoi(check_slurp("/proc/sys/net/unix/max_dgram_qlen", text, sizeof(text)));
}

/*
 * More datagrams than an unconnected socket takes, one of which is a stranger's; those of a socket
 * that sends no more; with a descriptor, of others than the peer that the socket has since.
 */
static void unread_datagrams(void)
{
	static const char *const names[] = { "server", "other", "shut", "many", "few", "passed" };
	int server = bind_unix("server", SOCK_DGRAM), other = bind_unix("other", SOCK_DGRAM);
	int shut = bind_unix("shut", SOCK_DGRAM), many = bind_unix("many", SOCK_DGRAM);
	int few = bind_unix("few", SOCK_DGRAM), passed = bind_unix("passed", SOCK_DGRAM);
	int room = max_unread();

	send_to(other, "many", 'o', -1);
	NEED(!connect_bound(many, "server"));
	for (int i = 0; i < room + 10; i++)
		send_to(server, "many", i, -1);
	send_to(shut, "few", 's', -1);
	send_to(shut, "passed", 's', 0);
	send_to(other, "passed", 'o', -1);
	NEED(!connect_bound(shut, "few") && !shutdown(shut, SHUT_WR) && !connect_bound(passed, "server"));
	checkpoint_here();
	CHECK(receives(many, 'o'));
	for (int i = 0; i < room + 10; i++)
		CHECK(receives(many, i));
	CHECK(receives(few, 's') && receives(passed, 's') && receives(passed, 'o'));
	CHECK(send(passed, "x", 1, 0) == 1 && receives(server, 'x'));
	CHECK(send(shut, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	CHECK(!connect_bound(other, "few") && send(other, "y", 1, 0) == 1 && receives(few, 'y'));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		CHECK(!unlink(names[i]));
}

/* From a peer that is no process of the tree: no more than fit into an unconnected socket. */
static void datagrams_outside(void)
{
	int fd = bind_unix("client", SOCK_DGRAM);
	char byte;

	NEED(!connect_bound(fd, check_argument) && send(fd, "x", 1, 0) == 1);
	while (access("sent", F_OK))
		check_sleep_ms(10);
	checkpoint_here();
	for (int i = 0; i <= max_unread(); i++)
		CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) == 1);
	CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK(send(fd, "x", 1, 0) == 1 && !unlink("client"));
}

static const struct check checks[] = {
	{ "datagrams_outside", datagrams_outside },
	{ "datagrams", unread_datagrams },
	{ "senders", unread_senders },
	{ "pidfd_senders", pidfd_senders },
	{ "stream_senders", stream_senders },
	{ "same_name", same_name },
	{ "removed_name", removed_name },
	{ "other_folder", other_folder },
	{ "removed_folder", removed_folder },
	{ "replaced_fifo", replaced_fifo },
	{ "freebind", freebind },
	{ "no_port", no_port },
	{ "reuseport", reuseport },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
