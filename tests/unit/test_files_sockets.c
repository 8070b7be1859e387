// SPDX-License-Identifier: GPL-2.0
/* Unix sockets: see files.h. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "report/report.h"
#include "resource/apart.h"

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
	files_say(10, "to eleven");
	files_say(10, ", twice");
	files_say(11, "to ten");
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
	must(!setsockopt(11, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	must(!setsockopt(11, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	pair(SOCK_DGRAM, 12, 13);
	files_say(12, "one");
	files_say(12, "");
	files_say(12, "three");
	pair(SOCK_SEQPACKET, 14, 15);
	files_say(14, "first");
	files_say(14, "second");
	files_say(15, "back");
	pair(SOCK_STREAM, 16, 17);
	files_say(16, "last words");
	must(!shutdown(16, SHUT_WR));
	pair(SOCK_STREAM, 18, 19);
	memset(big, 'b', sizeof(big));
	must(send(18, big, sizeof(big), 0) == sizeof(big));
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	files_at(p[0], 20);
	files_say(p[1], "orphan");
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
	must(files_hears(11, "to eleven, twice") && files_hears(10, "to ten") && files_silent(10));
	must(!getsockopt(11, SOL_SOCKET, SO_RCVTIMEO, &t, &length) && t.tv_sec == 5);
	files_say(10, "on");
	must(files_hears(11, "on"));
	must(files_hears(13, "one") && files_hears(13, "") && files_hears(13, "three") && files_silent(13));
	files_say(13, "answer");
	must(files_hears(12, "answer"));
	must(files_hears(15, "first") && files_hears(15, "second") && files_silent(15) && files_hears(14, "back"));
	must(files_hears(17, "last words") && files_hears(17, ""));
	files_say(17, "still");
	must(files_hears(16, "still"));
	must(send(16, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(recv(19, big, sizeof(big), MSG_WAITALL) == sizeof(big) && big[99999] == 'b');
	must(files_silent(19));
	must(files_hears(20, "orphan") && files_hears(20, ""));
	must(send(20, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	must(send(21, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
	close(14);
	must(files_hears(15, ""));
}

/* The peer has closed without having read all: an error waits behind what it sent. */
static void make_abandoned(void)
{
	static const int type[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (int i = 0; i < 2; i++) {
		pair(type[i], 10 + i, 20);
		files_say(10 + i, "unread");
		files_say(20, "rest");
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
	must(files_hears(10, "rest") && files_hears(10, "") && files_hears(11, "rest") && files_hears(11, ""));
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
	files_say(11, "accepted");
	files_at(socket(AF_UNIX, SOCK_STREAM, 0), 13);
	join(13, "listener");			/* not accepted yet */
	files_at(bound(SOCK_DGRAM, "@abstract"), 14);
	files_at(bound(SOCK_DGRAM, "sender"), 15);
	join(15, "@abstract");
	files_say(15, "signed");
	files_at(bound(SOCK_SEQPACKET, "gone"), 16);
	must(!listen(16, 1) && !unlink(files_path("gone")));
}

static void use_named(void)
{
	struct sockaddr_un a = {};
	socklen_t length = sizeof(a);
	struct stat st;
	char buffer[16];
	int fd;

	must(!stat(files_path("listener"), &st) && (st.st_mode & 07777) == 0751);
	must(files_hears(12, "accepted"));
	must(!getpeername(11, (struct sockaddr *)&a, &length));
	must(!strcmp(a.sun_path, files_path("listener")));
	fd = accept(10, NULL, NULL);
	files_say(13, "pending");
	must(fd >= 0 && files_hears(fd, "pending"));
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
	must(accept(10, NULL, NULL) == -1 && errno == EAGAIN);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	join(fd, "listener");
	must(accept(10, NULL, NULL) >= 0);
	memset(&a, 0, sizeof(a));
	length = sizeof(a);
	must(recvfrom(14, buffer, sizeof(buffer), 0, (struct sockaddr *)&a, &length) == 6);
	must(!strcmp(a.sun_path, files_path("sender")));
	files_say(15, "again");
	must(files_hears(14, "again"));
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
	files_say(600, "hello");
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
	/* On a busy machine it may come too late: not for ever. */
	for (int i = 0; i < 50000 && connect(fd, (struct sockaddr *)&a, length); i++)
		usleep(20);
	_exit(read(fd, &c, 1) > 0);
}

static void use_besieged(void)
{
	struct pollfd p = { .fd = 601, .events = POLLIN };

	must(poll(&p, 1, 5000) == 1 && files_hears(601, "hello"));
	files_say(601, "answer");
	must(files_hears(600, "answer"));
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
	files_say(10, "x");
}

static void use_hung_up(void)
{
	must(files_hears(10, ""));
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

/* The descriptor comes with its byte. */
static void use_passed(void)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd;

	assert_int_equal(recvmsg(11, &m, MSG_DONTWAIT), 1);
	c = CMSG_FIRSTHDR(&m);
	assert_non_null(c);
	assert_int_equal(c->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	assert_int_equal(close(fd), 0);
}

static void test_outside(void **state)
{
	(void)state;
	server = bound(SOCK_STREAM, "server");
	assert_int_equal(listen(server, 5), 0);
	files_cycle(&(struct files_test){ .make = make_unix_outside, .use = use_hung_up });
	close(server);
	files_cycle(&(struct files_test){ .make = make_passing, .use = use_passed });
}

static void undo(void *arg)
{
	must(write(*(int *)arg, "undone", 6) == 6);
}

/* What a guarded step has changed is given back if its process ends within it, and only then. */
static void test_guard(void **state)
{
	char text[8];
	int ends[2];

	(void)state;
	for (int unguards = 0; unguards < 2; unguards++) {
		assert_int_equal(pipe(ends), 0);
		if (!fork()) {
			struct apart_guard guard = apart_guard(undo, &ends[1]);

			if (unguards)
				apart_unguard(&guard);
			kill(getpid(), SIGKILL);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], text, sizeof(text)), unguards ? 0 : 6);
		close(ends[0]);
		wait(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs), cmocka_unit_test(test_named),
		cmocka_unit_test(test_outside), cmocka_unit_test(test_guard),
	};

	return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
