// SPDX-License-Identifier: GPL-2.0
/* Files that report events, and terminals: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "report/report.h"

static uint64_t take(int fd)
{
	uint64_t value = 0;

	must(read(fd, &value, sizeof(value)) == sizeof(value));
	return value;
}

static void give(int fd, uint64_t value)
{
	must(write(fd, &value, sizeof(value)) == sizeof(value));
}

/* ---- eventfd, signalfd, timerfd -------------------------------------------------------- */

static void make_counters(void)
{
	struct itimerspec spec = { .it_value = { 100, 0 }, .it_interval = { 7, 5 } };
	struct itimerspec soon = { .it_value = { 0, 1000000 }, .it_interval = { 0, 20000000 } };
	struct timespec now;
	sigset_t mask;

	files_at(eventfd(41, 0), 10);
	files_at(eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK), 11);
	files_at(eventfd(0, EFD_NONBLOCK), 12);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGRTMAX);
	files_at(signalfd(-1, &mask, SFD_NONBLOCK), 13);
	files_at(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), 14);
	must(!timerfd_settime(14, 0, &spec, NULL));
	files_at(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), 15);
	must(!timerfd_settime(15, 0, &soon, NULL));
	usleep(50000);
	files_at(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK), 16);
	clock_gettime(CLOCK_REALTIME, &now);
	spec.it_value.tv_sec = now.tv_sec + 1000;
	must(!timerfd_settime(16, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &spec, NULL));
	files_at(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK), 17);
}

static void use_counters(void)
{
	struct signalfd_siginfo info;
	struct itimerspec spec;
	sigset_t mask;

	give(10, 1);
	must(take(10) == 42);
	must(take(11) == 1 && take(11) == 1 && take(11) == 1);
	must(read(11, &spec, 8) == -1 && errno == EAGAIN);
	must(read(12, &spec, 8) == -1 && errno == EAGAIN);
	sigfillset(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	kill(getpid(), SIGUSR1);
	must(read(13, &info, sizeof(info)) == -1 && errno == EAGAIN);
	kill(getpid(), SIGRTMAX);
	must(read(13, &info, sizeof(info)) == sizeof(info) && (int)info.ssi_signo == SIGRTMAX);
	must(!timerfd_gettime(14, &spec));
	must(spec.it_value.tv_sec >= 10 && spec.it_value.tv_sec <= 100);
	must(spec.it_interval.tv_sec == 7 && spec.it_interval.tv_nsec == 5);
	must(take(15) >= 2);
	usleep(30000);
	must(take(15) >= 1);
	must(!timerfd_gettime(16, &spec) && spec.it_value.tv_sec > 900 && spec.it_value.tv_sec <= 1000);
	must(!timerfd_gettime(17, &spec) && !spec.it_value.tv_sec && !spec.it_value.tv_nsec);
}

/* So short that the next expiration is often due when the timer is asked for its time. */
static void make_fast_timers(void)
{
	const struct itimerspec spec = { { 0, 20000 }, { 0, 20000 } };

	for (int fd = 10; fd < 110; fd++) {
		files_at(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), fd);
		must(!timerfd_settime(fd, 0, &spec, NULL));
	}
}

static void use_fast_timers(void)
{
	for (int fd = 10; fd < 110; fd++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t ticks;

		for (int i = 0; i < 3; i++) {
			must(poll(&p, 1, 5000) == 1);
			must(read(fd, &ticks, sizeof(ticks)) == sizeof(ticks));
		}
	}
}

static void test_fast_timers(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_fast_timers, .use = use_fast_timers });
}

static void test_counters(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_counters, .use = use_counters });
}

/* ---- pidfd, inotify -------------------------------------------------------------------- */

static void make_pidfds(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	files_at(syscall(SYS_pidfd_open, getpid(), 0), 10);
	files_at(syscall(SYS_pidfd_open, child, 0), 11);
	usleep(20000);
	files_at(syscall(SYS_pidfd_open, getppid(), 0), 12);
}

static void use_pidfds(void)
{
	struct pollfd p[] = { { .fd = 10, .events = POLLIN }, { .fd = 11, .events = POLLIN },
			      { .fd = 12, .events = POLLIN } };

	must(poll(p, 3, 0) == 2 && !p[0].revents && p[1].revents && p[2].revents);
	must(!syscall(SYS_pidfd_send_signal, 10, 0, NULL, 0));
	must(syscall(SYS_pidfd_send_signal, 12, 0, NULL, 0) == -1 && errno == ESRCH);
	signal(SIGUSR1, SIG_DFL);
	syscall(SYS_pidfd_send_signal, 10, SIGCONT, NULL, 0);
}

static void make_nothing(void)
{
}

/* Numbers in the order that an event loop makes them: the epoll is the first. */
static void watch_parent(void)
{
	files_at(epoll_create1(0), 10);
	files_at(syscall(SYS_pidfd_open, getppid(), 0), 11);
	files_at(openat(AT_FDCWD, "/proc/self/mounts", O_RDONLY), 12);
	files_watch(10, 11, EPOLLIN, 1);
	files_watch(10, 12, EPOLLPRI | EPOLLET, 2);
}

static void end_soon(void)
{
	usleep(50000);
}

static void use_watched_parent(void)
{
	struct epoll_event event;
	int ready;

	do
		ready = epoll_wait(10, &event, 1, 5000);
	while (ready == 1 && event.data.u64 == 2);
	must(ready == 1 && event.data.u64 == 1);
	must(!epoll_ctl(10, EPOLL_CTL_DEL, 11, NULL) && !epoll_ctl(10, EPOLL_CTL_DEL, 12, NULL));
}

static void test_pidfd(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_pidfds, .use = use_pidfds });
	files_cycle(&(struct files_test){ .make = make_nothing, .make_child = watch_parent,
					  .use = end_soon, .use_child = use_watched_parent });
}

static void make_inotify(void)
{
	int fd = inotify_init1(IN_NONBLOCK);

	mkdir(files_path("watched"), 0700);
	mkdir(files_path("too"), 0700);
	files_at(fd, 10);
	must(inotify_add_watch(10, files_path("too"), IN_CREATE) == 1);
	must(inotify_add_watch(10, files_path("watched"), IN_CREATE | IN_DELETE) == 2);
	must(!inotify_rm_watch(10, 1));
	must(inotify_add_watch(10, files_path("too"), IN_DELETE) == 3);
	must(read(10, (char[64]){}, 64) > 0);
}

static void use_inotify(void)
{
	struct { struct inotify_event e; char name[32]; } event;
	int fd;

	must(read(10, &event, sizeof(event)) == -1 && errno == EAGAIN);
	fd = open(files_path("watched/new"), O_CREAT | O_WRONLY, 0600);
	must(read(10, &event, sizeof(event)) > 0 && event.e.wd == 2 && event.e.mask == IN_CREATE);
	must(!strcmp(event.e.name, "new"));
	close(fd);
	must(!inotify_rm_watch(10, 3));
}

static void test_inotify(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_inotify, .use = use_inotify });
}

/* ---- terminals -------------------------------------------------------------------------- */

static void make_pty(void)
{
	struct winsize size = { 33, 99, 0, 0 };
	struct termios modes;
	int master, slave;

	must(!openpty(&master, &slave, NULL, NULL, &size));
	files_at(master, 10);
	files_at(slave, 11);
	must(!tcgetattr(11, &modes));
	cfmakeraw(&modes);
	modes.c_cc[VINTR] = 7;
	must(!tcsetattr(11, TCSANOW, &modes));
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
}

static void use_pty(void)
{
	struct winsize size;
	struct termios modes;
	char buffer[8];

	must(isatty(11) && !ioctl(11, TIOCGWINSZ, &size) && size.ws_row == 33 && size.ws_col == 99);
	must(!tcgetattr(11, &modes) && !(modes.c_lflag & ICANON) && modes.c_cc[VINTR] == 7);
	must(fcntl(10, F_GETFL) & O_NONBLOCK && !(fcntl(11, F_GETFL) & O_NONBLOCK));
	must(write(10, "in", 2) == 2 && read(11, buffer, 8) == 2);
	must(write(11, "out\n", 4) == 4);
	usleep(10000);
	must(read(10, buffer, 8) == 4);
	close(10);
	must(read(11, buffer, 8) <= 0);
}

static void make_busy_pty(void)
{
	struct termios modes;
	int master, slave;

	must(!openpty(&master, &slave, NULL, NULL, NULL));
	files_at(master, 10);
	files_at(slave, 11);
	must(!tcgetattr(11, &modes));
	modes.c_lflag &= ~ECHO;
	must(!tcsetattr(11, TCSANOW, &modes));
	must(write(10, "one\rtwo\npart", 12) == 12);
	must(write(11, "out\n", 4) == 4);
}

static bool reads(int fd, const char *text)
{
	size_t length = strlen(text), got = 0;
	char buffer[64];
	ssize_t n;

	do {				/* what is written at once may come in parts */
		n = read(fd, buffer + got, sizeof(buffer) - got);
		got += n > 0 ? n : 0;
	} while (n > 0 && got < length);
	return n >= 0 && got == length && !memcmp(buffer, text, got);
}

static void use_busy_pty(void)
{
	struct pollfd output = { .fd = 10, .events = POLLIN };
	int n;

	must(poll(&output, 1, 10000) == 1);
	must(reads(11, "one\n") && reads(11, "two\n") && reads(10, "out\r\n"));
	must(!ioctl(11, FIONREAD, &n) && n == 0);
	must(write(10, "ial\n", 4) == 4 && reads(11, "partial\n"));
}

/* Its program is in packet mode and has ended an input, which is in two parts. */
static void make_ended_pty(void)
{
	int on = 1;

	make_busy_pty();
	must(!ioctl(10, TIOCPKT, &on));
	must(write(10, "ial\nend\4\4", 9) == 9 && write(10, "next\n", 5) == 5);
}

static void use_ended_pty(void)
{
	char packet[8];

	must(read(10, packet, 8) == 6 && !memcmp(packet, "\0out\r\n", 6));
	must(reads(11, "one\n") && reads(11, "two\n") && reads(11, "partial\n"));
	must(reads(11, "end") && reads(11, "") && reads(11, "next\n"));
}

/* More comes at the last moment, and is still on its way when it is saved. */
static void write_more(struct file_table *t, pid_t pid)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	int master = syscall(SYS_pidfd_getfd, pidfd, 10, 0);

	(void)t;
	assert_int_equal(write(master, "c", 1), 1);
	assert_int_equal(write(master, "d\n", 2), 2);
	close(master);
	close(pidfd);
}

static void make_raw_pty(void)
{
	make_pty();
	must(write(10, "ab", 2) == 2);
}

static void use_raw_pty(void)
{
	must(reads(11, "abcd\n"));
}

static void use_more(void)
{
	must(reads(11, "one\n") && reads(11, "two\n") && reads(11, "partcd\n"));
}

/* /dev/tty of a program in a terminal that is saved with it, unread input in it. */
static void make_tty_inside(void)
{
	int master, slave;

	must(setsid() > 0 && !openpty(&master, &slave, NULL, NULL, NULL));
	files_at(master, 10);
	must(!ioctl(slave, TIOCSCTTY, 0));
	files_at(open("/dev/tty", O_RDWR), 11);
	close(slave);
	must(write(10, "in\n", 3) == 3);
	for (int n = 0; n != 4; usleep(200))	/* the echo comes in the background */
		must(!ioctl(10, FIONREAD, &n));
}

static void use_tty_inside(void)
{
	char echo[8];

	must(isatty(11) && reads(11, "in\n"));
	must(read(10, echo, 8) == 4);
	must(write(11, "out\n", 4) == 4 && reads(10, "out\r\n"));
	must(write(10, "x\n", 2) == 2 && reads(11, "x\n"));
}

static void test_pty(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_ended_pty, .use = use_ended_pty });
	for (int i = 0; i < 20; i++) {
		files_cycle(&(struct files_test){ .make = make_raw_pty, .use = use_raw_pty,
						  .before_save = write_more });
		files_cycle(&(struct files_test){ .make = make_busy_pty, .use = use_more,
						  .before_save = write_more });
	}
	files_cycle(&(struct files_test){ .make = make_busy_pty, .use = use_busy_pty });
	files_cycle(&(struct files_test){ .make = make_pty, .use = use_pty });
	files_cycle(&(struct files_test){ .make = make_tty_inside, .use = use_tty_inside });
}

static int outside_slave;

static void make_tty_outside(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), outside_slave);
	files_at(open(path, O_RDWR | O_NOCTTY), 0);
	dup2(0, 1);
	dup2(0, 10);
}

static void no_terminal(void)
{
	setsid();
	files_at(open("/dev/null", O_RDONLY), 0);
	files_at(open(files_path("out"), O_RDWR | O_CREAT, 0600), 1);
	files_at(open("/dev/null", O_RDWR), 2);
}

static void use_no_terminal(void)
{
	char c;

	must(write(1, "seen", 4) == 4);
	must(read(0, &c, 1) == 0);
	must(read(10, &c, 1) == 0 && write(10, "x", 1) == -1 && errno == EIO);
	must(pread(open(files_path("out"), O_RDONLY), &c, 1, 3) == 1 && c == 'n');
}

static int other_slave;

static void with_terminal(void)
{
	files_at(dup(other_slave), 0);
	dup2(0, 1);
	dup2(0, 2);
}

static void make_watched_tty(void)
{
	make_tty_outside();
	files_at(epoll_create1(0), 11);
	files_watch(11, 0, EPOLLIN, 1);
}

static void use_watched_tty(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	must(epoll_ctl(11, EPOLL_CTL_ADD, 0, &event) == -1 && errno == EPERM);
}

static void use_terminal(void)
{
	must(isatty(1) && isatty(10) && write(10, "x", 1) == 1);
	must(!strcmp(ttyname(0), ttyname(10)));
}

static void test_tty(void **state)
{
	int master, other;

	(void)state;
	must(!openpty(&master, &outside_slave, NULL, NULL, NULL));
	must(!openpty(&other, &other_slave, NULL, NULL, NULL));
	files_cycle(&(struct files_test){ .make = make_tty_outside, .use = use_no_terminal,
					  .before_restart = no_terminal });
	files_cycle(&(struct files_test){ .make = make_watched_tty, .use = use_watched_tty,
					  .before_restart = no_terminal });
	files_cycle(&(struct files_test){ .make = make_tty_outside, .use = use_terminal,
					  .before_restart = with_terminal });
	close(master);
	close(outside_slave);
	close(other);
	close(other_slave);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters), cmocka_unit_test(test_fast_timers),
		cmocka_unit_test(test_pidfd),
		cmocka_unit_test(test_inotify), cmocka_unit_test(test_pty),
		cmocka_unit_test(test_tty),
	};

	return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
