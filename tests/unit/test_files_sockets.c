// SPDX-License-Identifier: GPL-2.0
/* Sockets: see files.h. */
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

static void say(int fd, const char *text)
{
	must(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

static bool hears(int fd, const char *text)
{
	char buffer[256] = "";
	size_t length = strlen(text);
	ssize_t got = recv(fd, buffer, length ? length : sizeof(buffer), 0);

	if (got == (ssize_t)length && !memcmp(buffer, text, length))
		return true;
	fprintf(stderr, "heard %zd: %s\n", got, buffer);
	return false;
}

static bool silent(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

static void pair(int type, int a, int b)
{
	int p[2];

	must(!socketpair(AF_UNIX, type, 0, p));
	files_at(p[0], a);
	files_at(p[1], b);
}

/* ---- pairs ------------------------------------------------------------------------------ */

static void make_pairs(void)
{
	struct timeval t = { 5, 0 };
	char big[100000];
	int one = 1, p[2];

	pair(SOCK_STREAM, 10, 11);
	say(10, "to eleven");
	say(10, ", twice");
	say(11, "to ten");
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
	must(!setsockopt(11, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	must(!setsockopt(11, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	pair(SOCK_DGRAM, 12, 13);
	say(12, "one");
	say(12, "");
	say(12, "three");
	pair(SOCK_SEQPACKET, 14, 15);
	say(14, "first");
	say(14, "second");
	say(15, "back");
	pair(SOCK_STREAM, 16, 17);
	say(16, "last words");
	must(!shutdown(16, SHUT_WR));
	pair(SOCK_STREAM, 18, 19);
	memset(big, 'b', sizeof(big));
	must(send(18, big, sizeof(big), 0) == sizeof(big));
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	files_at(p[0], 20);
	say(p[1], "orphan");
	close(p[1]);
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 21);
	files_at(socket(AF_UNIX, SOCK_DGRAM, 0), 22);
}

static void use_pairs(void)
{
	socklen_t length = sizeof(struct timeval);
	struct timeval t;
	char big[100000];

	must(fcntl(10, F_GETFL) & O_NONBLOCK && !(fcntl(11, F_GETFL) & O_NONBLOCK));
	must(hears(11, "to eleven, twice") && hears(10, "to ten") && silent(10));
	must(!getsockopt(11, SOL_SOCKET, SO_RCVTIMEO, &t, &length) && t.tv_sec == 5);
	say(10, "on");
	must(hears(11, "on"));
	must(hears(13, "one") && hears(13, "") && hears(13, "three") && silent(13));
	say(13, "answer");
	must(hears(12, "answer"));
	must(hears(15, "first") && hears(15, "second") && silent(15) && hears(14, "back"));
	must(hears(17, "last words") && hears(17, ""));
	say(17, "still");
	must(hears(16, "still"));
	must(send(16, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(recv(19, big, sizeof(big), MSG_WAITALL) == sizeof(big) && big[99999] == 'b');
	must(silent(19));
	must(hears(20, "orphan") && hears(20, ""));
	must(send(20, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(send(21, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
	close(14);
	must(hears(15, ""));
}

/* The peer has closed without having read all: an error waits behind what it sent. */
static void make_abandoned(void)
{
	static const int type[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (int i = 0; i < 2; i++) {
		pair(type[i], 10 + i, 20);
		say(10 + i, "unread");
		say(20, "rest");
		close(20);
	}
}

/* The program that runs on still gets the error of its stream. */
static void save_abandoned(struct file_table *t, pid_t pid)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = syscall(SYS_pidfd_getfd, pidfd, 10, 0) };

	assert_int_equal(file_table_save(t), 0);
	assert_true(poll(&p, 1, 0) == 1 && p.revents & POLLERR);
	close(p.fd);
	close(pidfd);
}

static void use_abandoned(void)
{
	must(hears(10, "rest") && hears(10, "") && hears(11, "rest") && hears(11, ""));
}

static void test_pairs(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_abandoned, .use = use_abandoned,
					  .before_save = save_abandoned });
	files_cycle(&(struct files_test){ .make = make_pairs, .use = use_pairs });
}

/* ---- names ------------------------------------------------------------------------------- */

static socklen_t address(const char *name, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if (name[0] == '@') {
		snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%s-%d", name, getppid());
		return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1);
	}
	strcpy(a->sun_path, files_path(name));
	return sizeof(*a);
}

static int bound(int type, const char *name)
{
	struct sockaddr_un a;
	socklen_t length = address(name, &a);
	int fd = socket(AF_UNIX, type, 0);

	must(!bind(fd, (struct sockaddr *)&a, length));
	return fd;
}

static void join(int fd, const char *name)
{
	struct sockaddr_un a;
	socklen_t length = address(name, &a);

	must(!connect(fd, (struct sockaddr *)&a, length));
}

static void make_named(void)
{
	files_at(bound(SOCK_STREAM, "listener"), 10);
	must(!listen(10, 7) && !chmod(files_path("listener"), 0751));
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 11);
	join(11, "listener");
	files_at(accept(10, NULL, NULL), 12);
	say(11, "accepted");
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 13);
	join(13, "listener");			/* not accepted yet */
	files_at(bound(SOCK_DGRAM, "@abstract"), 14);
	files_at(bound(SOCK_DGRAM, "sender"), 15);
	join(15, "@abstract");
	say(15, "signed");
	files_at(bound(SOCK_SEQPACKET, "gone"), 16);
	must(!listen(16, 1) && !unlink(files_path("gone")));
}

static void use_named(void)
{
	struct sockaddr_un a = { };
	socklen_t length = sizeof(a);
	struct stat st;
	char buffer[16];
	int fd;

	must(!stat(files_path("listener"), &st) && (st.st_mode & 07777) == 0751);
	must(hears(12, "accepted"));
	must(!getpeername(11, (struct sockaddr *)&a, &length));
	must(!strcmp(a.sun_path, files_path("listener")));
	fd = accept(10, NULL, NULL);
	say(13, "pending");
	must(fd >= 0 && hears(fd, "pending"));
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
	must(accept(10, NULL, NULL) == -1 && errno == EAGAIN);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	join(fd, "listener");
	must(accept(10, NULL, NULL) >= 0);
	memset(&a, 0, sizeof(a));
	length = sizeof(a);
	must(recvfrom(14, buffer, sizeof(buffer), 0, (struct sockaddr *)&a, &length) == 6);
	must(!strcmp(a.sun_path, files_path("sender")));
	say(15, "again");
	must(hears(14, "again"));
	length = sizeof(a);
	must(!getsockname(14, (struct sockaddr *)&a, &length) && !a.sun_path[0] &&
	     a.sun_path[1] == '@');
	must(access(files_path("gone"), F_OK) == -1);
	unlink(files_path("listener"));
	unlink(files_path("sender"));
}

/* A client that is not saved connects again as soon as the name is there. */
static void make_besieged(void)
{
	files_at(bound(SOCK_STREAM, "besieged"), 10);
	must(!listen(10, 50));
	for (int i = 20; i < 500; i++)	/* to be restored in between */
		must(dup2(open("/dev/null", O_RDONLY), i) == i);
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 600);
	join(600, "besieged");
	files_at(accept(10, NULL, NULL), 601);
	say(600, "hello");
}

static void besiege(void)
{
	struct sockaddr_un a;
	socklen_t length = address("besieged", &a);
	int fd;
	char c;

	if (fork())
		return;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	while (connect(fd, (struct sockaddr *)&a, length))
		usleep(20);
	_exit(read(fd, &c, 1) > 0);
}

static void use_besieged(void)
{
	struct pollfd p = { .fd = 601, .events = POLLIN };

	must(poll(&p, 1, 5000) == 1 && hears(601, "hello"));
	say(601, "answer");
	must(hears(600, "answer"));
	unlink(files_path("besieged"));
}

static void test_named(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_named, .use = use_named });
	files_cycle(&(struct files_test){ .make = make_besieged, .use = use_besieged,
					  .before_restart = besiege });
}

static int server;

static void make_unix_outside(void)
{
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 10);
	join(10, "server");
	say(10, "x");
}

static void use_hung_up(void)
{
	must(hears(10, ""));
	must(send(10, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

static void make_passing(void)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec v = { (char *)"x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	pair(SOCK_STREAM, 10, 11);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	must(sendmsg(10, &m, 0) == 1);
}

static void use_nothing(void)
{
}

static void test_outside(void **state)
{
	(void)state;
	server = bound(SOCK_STREAM, "server");
	assert_int_equal(listen(server, 5), 0);
	files_cycle(&(struct files_test){ .make = make_unix_outside, .use = use_hung_up });
	close(server);
	files_cycle(&(struct files_test){ .make = make_passing, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
}

/* ---- internet --------------------------------------------------------------------------- */

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
	say(11, "to the server");
	say(12, "to the client");
	/* Without its listening socket, one side done. */
	fd = inet(SOCK_STREAM, 0);
	must(!listen(fd, 1));
	files_at(inet_connect(SOCK_STREAM, port_of(fd)), 13);
	files_at(accept(fd, NULL, NULL), 14);
	close(fd);
	say(13, "over");
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

	must(hears(12, "to the server") && hears(11, "to the client") && silent(11));
	say(12, "on");
	must(hears(11, "on"));
	must(!getsockopt(11, IPPROTO_TCP, TCP_NODELAY, &value, &length) && value);
	must(port_of(12) == TEST_PORT);
	must(hears(14, "over") && hears(14, ""));
	say(14, "half");
	must(hears(13, "half") && send(13, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(pread(17, &stuffed, sizeof(stuffed), 0) == sizeof(stuffed));
	while (stuffed && (got = recv(16, block, sizeof(block), 0)) > 0) {
		for (int i = 0; i < got; i++)
			must(block[i] == 's');
		stuffed -= got;
	}
	must(!stuffed && silent(16));
	say(15, "again");
	must(hears(16, "again"));
	fd = inet_connect(SOCK_STREAM, TEST_PORT);
	must(accept(10, NULL, NULL) >= 0);
	close(fd);
	say(21, "datagram");
	must(hears(20, "datagram"));
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
	say(fd, "greeting");
	fd = accept(server, NULL, NULL);
	say(fd, "goodbye");
	close(fd);
}

static void use_reset(void)
{
	struct pollfd p = { .fd = 10, .events = POLLIN };
	char c;

	must(hears(10, "greeting"));
	must(poll(&p, 1, 0) == 1);
	must(recv(10, &c, 1, 0) <= 0);
	must(send(10, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(hears(11, "goodbye") && hears(11, ""));
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
	must(hears(fd, ""));
	say(fd, "answer");
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
	must(hears(12, "answer") && hears(12, ""));
	must(!connect(13, (struct sockaddr *)&a, sizeof(a)) && accept(10, NULL, NULL) >= 0);
}

static void test_closed(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_closed, .use = use_closed });
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
		say(20 + i, "hello");
	}
}

static void use_shared_port(void)
{
	for (int i = 0; i < 16; i += 2) {
		must(hears(21 + i, "hello"));
		say(21 + i, "answer");
		must(hears(20 + i, "answer") && port_of(21 + i) == SHARED_PORT);
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
	say(11, "hello");
	files_at(accept(10, NULL, NULL), 12);
	must(hears(12, "hello"));
}

static void use_deferred(void)
{
	say(11, "on");
	must(hears(12, "on") && !fcntl(10, F_SETFL, O_NONBLOCK));
	must(accept(10, NULL, NULL) == -1 && errno == EAGAIN);
}

static void test_listeners(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_shared_port, .use = use_shared_port });
	files_cycle(&(struct files_test){ .make = make_deferred, .use = use_deferred });
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

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(files_folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[80];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", files_folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs), cmocka_unit_test(test_named),
		cmocka_unit_test(test_outside), cmocka_unit_test(test_inet),
		cmocka_unit_test(test_closed), cmocka_unit_test(test_listeners),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
