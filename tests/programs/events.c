// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors by which a program waits for something.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

/* ---- epoll ---- */

static int wait_one(int epoll, uint64_t *data)
{
	struct epoll_event event = { 0 };
	int got = epoll_wait(epoll, &event, 1, 100);

	*data = event.data.u64;
	return got;
}

static void add(int epoll, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

/*
 * epoll: level and edge triggered, one-shot that is spent, nested, exclusive, an entry whose
 * descriptor number has been closed while a duplicate lives; data of every entry.
 */
static void fd_epoll(void)
{
	int outer, inner, edges, exclusive = epoll_create1(0), a[2], b[2], c[2];
	struct epoll_event rearm = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 31 };
	uint64_t data;
	char byte;

	outer = epoll_create1(0);
	inner = epoll_create1(EPOLL_CLOEXEC);
	edges = epoll_create1(0);
	NEED(outer >= 0 && inner >= 0 && edges >= 0 && !pipe(a) && !pipe(b) && !pipe(c));
	add(inner, a[0], EPOLLIN, 0x1122334455667788ull);
	add(outer, inner, EPOLLIN, 2);
	add(exclusive, a[0], EPOLLIN | EPOLLEXCLUSIVE, 3);
	add(edges, b[0], EPOLLIN | EPOLLET, 20);
	add(edges, c[0], EPOLLIN | EPOLLONESHOT, 30);
	NEED(write(b[1], "x", 1) == 1 && write(c[1], "x", 1) == 1);
	NEED(wait_one(edges, &data) == 1 && wait_one(edges, &data) == 1);
	NEED(wait_one(edges, &data) == 0);
	checkpoint_here();
	/* An edge may be told again after a restart (it is armed anew), a spent one-shot not. */
	while (wait_one(edges, &data) == 1)
		CHECK(data == 20);
	CHECK(write(b[1], "y", 1) == 1 && wait_one(edges, &data) == 1 && data == 20);
	CHECK(!epoll_ctl(edges, EPOLL_CTL_MOD, c[0], &rearm));
	CHECK(wait_one(edges, &data) == 1 && data == 31);
	CHECK(epoll_ctl(exclusive, EPOLL_CTL_MOD, a[0], &rearm) < 0 && errno == EINVAL);
	CHECK(wait_one(outer, &data) == 0);
	CHECK(write(a[1], "x", 1) == 1 && wait_one(exclusive, &data) == 1 && data == 3);
	CHECK(wait_one(outer, &data) == 1 && data == 2);
	CHECK(wait_one(inner, &data) == 1 && data == 0x1122334455667788ull);
	CHECK(read(a[0], &byte, 1) == 1 && wait_one(outer, &data) == 0);
	CHECK(!epoll_ctl(inner, EPOLL_CTL_DEL, a[0], NULL));
	CHECK(fcntl(inner, F_GETFD) == FD_CLOEXEC);
}

/* ---- busy_poll ---- */

#define SET_PARAMETERS	_IOW(0x8a, 1, uint64_t)	/* EPIOCSPARAMS */
#define GET_PARAMETERS	_IOR(0x8a, 2, uint64_t)

/* Of the file that one watches only a process outside has a descriptor. */
static void fd_epoll_outside(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];
	struct epoll_event event;

	NEED(epoll >= 0 && !pipe(ends));
	add(epoll, ends[0], EPOLLIN, 5);
	NEED(check_leave_orphan() && !close(ends[0]));
	checkpoint_here();
	CHECK(!epoll_wait(epoll, &event, 1, 0));
}

/* How an epoll polls network devices (Linux 6.9). */
static void fd_busy_poll(void)
{
	uint64_t set = 123 | 16ull << 32 | 1ull << 48, got = 0;	/* struct epoll_params */
	int fd = epoll_create1(0);

	NEED(fd >= 0);
	if (ioctl(fd, SET_PARAMETERS, &set))
		check_skip("this kernel has no EPIOCSPARAMS");
	checkpoint_here();
	CHECK(!ioctl(fd, GET_PARAMETERS, &got) && got == set);
}

/* ---- eventfd ---- */

/* eventfd: counter, semaphore mode, flags. */
static void fd_eventfd(void)
{
	int plain, semaphore;
	uint64_t value;

	plain = eventfd(41, EFD_CLOEXEC);
	semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
	value = 1;
	NEED(plain >= 0 && semaphore >= 0 && write(plain, &value, 8) == 8);
	checkpoint_here();
	CHECK(fcntl(plain, F_GETFD) == FD_CLOEXEC && fcntl(semaphore, F_GETFL) & O_NONBLOCK);
	CHECK(read(plain, &value, 8) == 8 && value == 42);
	CHECK(read(semaphore, &value, 8) == 8 && value == 1);
	CHECK(read(semaphore, &value, 8) == 8 && value == 1);
	CHECK(read(semaphore, &value, 8) < 0 && errno == EAGAIN);
	value = 7;
	CHECK(write(plain, &value, 8) == 8 && read(plain, &value, 8) == 8 && value == 7);
}

/* ---- inotify ---- */

/* Is that a watch that ends with its first event?  Since Linux 5.18 the kernel tells. */
static bool is_once(int fd)
{
	char name[64], text[512] = "";
	int info;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	info = open(name, O_RDONLY);
	NEED(info >= 0 && read(info, text, sizeof(text) - 1) > 0 && !close(info));
	return strstr(text, "mask:84000100");
}

/* inotify: its watches and their numbers.  The argument is the folder to work in. */
static void fd_inotify(void)
{
	char folder[64], name[128];
	struct { struct inotify_event event; char name[64]; } got;
	int fd, first, second, once = inotify_init1(IN_NONBLOCK);
	bool tells;

	snprintf(folder, sizeof(folder), "%s/kcr-inotify.XXXXXX",
		 check_argument ? check_argument : "/tmp");
	NEED(mkdtemp(folder));
	fd = inotify_init1(IN_NONBLOCK);
	first = inotify_add_watch(fd, "/tmp", IN_ATTRIB);
	second = inotify_add_watch(fd, folder, IN_CREATE | IN_DELETE);
	NEED(fd >= 0 && first > 0 && second > 0 && !inotify_rm_watch(fd, first));
	NEED(read(fd, &got, sizeof(got)) > 0);
	NEED(inotify_add_watch(once, folder, IN_CREATE | IN_ONESHOT | IN_EXCL_UNLINK) > 0);
	tells = is_once(once);
	checkpoint_here();
	CHECK(!tells || is_once(once));
	CHECK(read(fd, &got, sizeof(got)) < 0 && errno == EAGAIN);
	snprintf(name, sizeof(name), "%s/new", folder);
	CHECK(close(open(name, O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(read(fd, &got, sizeof(got)) > 0 && got.event.wd == second &&
	      got.event.mask == IN_CREATE && !strcmp(got.event.name, "new"));
	CHECK(!inotify_rm_watch(fd, second));
	CHECK(!unlink(name) && !rmdir(folder));
}

/* ---- pidfd ---- */

/* A pidfd of a child that is in the tree, also watched by an epoll made before it. */
static void fd_pidfd(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 17 };
	struct pollfd poller;
	siginfo_t info;
	pid_t child;
	int epoll, fd;

	epoll = epoll_create1(0);
	child = fork();
	if (!child)
		for (;;)
			pause();
	fd = syscall(SYS_pidfd_open, child, 0);
	NEED(child > 0 && fd >= 0 && epoll >= 0 && epoll < fd);
	NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	event.data.u64 = 0;
	checkpoint_here();
	poller = (struct pollfd){ fd, POLLIN, 0 };
	CHECK(poll(&poller, 1, 0) == 0);
	CHECK(!syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
	CHECK(poll(&poller, 1, -1) == 1);
	CHECK(epoll_wait(epoll, &event, 1, -1) == 1 && event.data.u64 == 17);
	CHECK(!waitid(P_PIDFD, fd, &info, WEXITED) && info.si_pid == child &&
	      info.si_status == SIGTERM);
}

/* ---- pidfd_shared ---- */

/*
 * An epoll that a child has, too, watches a pidfd and a file of /proc, which is always ready: once, and
 * no more when the parent ends that.
 */
static void fd_pidfd_shared(void)
{
	int epoll = epoll_create1(0), mounts = open("/proc/self/mountinfo", O_RDONLY), fd;
	pid_t watched = fork(), worker;
	struct epoll_event events[8];
	struct pollfd poller;

	if (!watched)
		pause();
	fd = syscall(SYS_pidfd_open, watched, 0);
	NEED(watched > 0 && fd >= 0 && epoll >= 0 && mounts >= 0);
	add(epoll, fd, EPOLLIN, 1);
	add(epoll, mounts, EPOLLIN, 2);
	worker = fork();
	if (!worker)
		pause();
	checkpoint_here();
	CHECK(epoll_wait(epoll, events, 8, 0) == 1 && events[0].data.u64 == 2);
	CHECK(!kill(watched, SIGKILL));
	poller = (struct pollfd){ fd, POLLIN, 0 };
	CHECK(poll(&poller, 1, 5000) == 1);
	CHECK(epoll_wait(epoll, events, 8, 0) == 2);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL) && !close(fd));
	CHECK(epoll_wait(epoll, events, 8, 0) == 1 && events[0].data.u64 == 2);
	CHECK(!kill(worker, SIGKILL) && waitpid(worker, NULL, 0) == worker);
	CHECK(waitpid(watched, NULL, 0) == watched);
}

/* ---- pidfd_outside ---- */

/* A pidfd of a process that is not saved: it has ended, as far as a restarted program knows. */
static void fd_pidfd_outside(void)
{
	struct pollfd poller = { .events = POLLIN };

	poller.fd = syscall(SYS_pidfd_open, 1, 0);
	NEED(poller.fd >= 0 && poll(&poller, 1, 0) == 0);
	checkpoint_here();
	CHECK(poll(&poller, 1, 0) == 1 && poller.revents & POLLIN);
}

/* ---- pidfd_thread ---- */

/* A pidfd of a thread, which is its process's first one here. */
static void fd_pidfd_thread(void)
{
	int fd = syscall(SYS_pidfd_open, getpid(), O_EXCL);

	if (fd < 0 && errno == EINVAL)
		check_skip("this kernel has no pidfds of threads");
	NEED(fd >= 0);
	checkpoint_here();
	CHECK(!syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
}

/* ---- signalfd ---- */

/* signalfd: its mask, a signal that waits in it, and further ones. */
static void fd_signalfd(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 4);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	NEED(fd >= 0 && !sigqueue(getpid(), SIGRTMIN + 4, (union sigval){ .sival_int = 5 }));
	checkpoint_here();
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
	CHECK(info.ssi_signo == (uint32_t)SIGRTMIN + 4 && info.ssi_int == 5);
	CHECK(read(fd, &info, sizeof(info)) < 0 && errno == EAGAIN);
	raise(SIGUSR1);
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

/* ---- signalfd_shared ---- */

/* An epoll that children have, too, tells the signals of the parent, which has added the signalfd. */
static void fd_signalfd_shared(void)
{
	int epoll = epoll_create1(0), fd;
	pid_t child[8];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	NEED(epoll >= 0 && !sigprocmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	NEED(fd >= 0);
	add(epoll, fd, EPOLLIN, 7);
	for (int i = 0; i < 8; i++) {
		child[i] = fork();
		if (!child[i])
			pause();
	}
	checkpoint_here();
	for (int i = 0; i < 2; i++) {
		struct signalfd_siginfo info;
		struct epoll_event event = {};

		raise(SIGUSR1);
		CHECK(epoll_wait(epoll, &event, 1, 5000) == 1 && event.data.u64 == 7);
		CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
	}
	for (int i = 0; i < 8; i++)
		CHECK(!kill(child[i], SIGKILL) && waitpid(child[i], NULL, 0) == child[i]);
}

static const struct check checks[] = {
	{ "epoll", fd_epoll },
	{ "epoll_outside", fd_epoll_outside },
	{ "busy_poll", fd_busy_poll },
	{ "eventfd", fd_eventfd },
	{ "inotify", fd_inotify },
	{ "pidfd", fd_pidfd },
	{ "pidfd_shared", fd_pidfd_shared },
	{ "pidfd_outside", fd_pidfd_outside },
	{ "pidfd_thread", fd_pidfd_thread },
	{ "signalfd", fd_signalfd },
	{ "signalfd_shared", fd_signalfd_shared },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
