// SPDX-License-Identifier: GPL-2.0
/* What epolls watch: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files.h"

static void take(int fd)
{
	eventfd_t value;

	must(!eventfd_read(fd, &value));
}

static void give(int fd, eventfd_t value)
{
	must(!eventfd_write(fd, value));
}

static void make_epoll(void)
{
	struct epoll_event event;

	files_at(epoll_create1(0), 10);
	files_at(epoll_create1(0), 11);
	for (int i = 20; i < 25; i++)
		files_at(eventfd(0, EFD_NONBLOCK), i);
	files_watch(10, 20, EPOLLIN, 20);
	files_watch(10, 21, EPOLLIN | EPOLLET, ~0ull);
	files_watch(10, 22, EPOLLIN | EPOLLONESHOT, 22);
	files_watch(10, 11, EPOLLIN, 11);
	files_watch(11, 23, EPOLLIN, 23);
	give(22, 1);
	must(epoll_wait(10, &event, 1, 0) == 1 && event.data.u64 == 22);
	/* Watched as 30 and 300, which are closed; and as 31, which is another file now. */
	dup2(24, 30);
	files_watch(10, 30, EPOLLIN, 30);
	close(30);
	dup2(24, 300);
	files_watch(10, 300, EPOLLIN, 300);
	close(300);
	dup2(24, 31);
	files_watch(11, 31, EPOLLIN, 31);
	files_at(eventfd(0, EFD_NONBLOCK), 31);
}

static int ready(int epoll, uint64_t data)
{
	struct epoll_event event[8];
	int count = epoll_wait(epoll, event, 8, 0);

	for (int i = 0; i < count; i++)
		if (event[i].data.u64 == data)
			return count;
	return count ? -count : 0;
}

static void use_epoll(void)
{
	must(ready(10, 0) == 0);
	give(20, 1);
	must(ready(10, 20) == 1 && ready(10, 20) == 1);
	take(20);
	give(21, 1);
	must(ready(10, ~0ull) == 1 && ready(10, 0) == 0);
	give(23, 1);
	must(ready(10, 11) == 1 && ready(11, 23) == 1);
	take(23);
	must(ready(10, 0) == 0);
	give(31, 1);
	must(ready(11, 0) == 0);
	give(24, 1);
	must(ready(10, 30) == 3 && ready(10, 300) == 3 && ready(11, 31) == 1);
	take(24);
	must(fcntl(30, F_GETFD) == -1);
	must(epoll_ctl(10, EPOLL_CTL_DEL, 22, NULL) == 0);
	must(epoll_ctl(11, EPOLL_CTL_DEL, 31, NULL) == -1 && errno == ENOENT);
}

static void child_of_epoll(void)
{
	files_at(epoll_create1(0), 12);
	files_watch(12, 20, EPOLLIN, 1);
	dup2(24, 40);
	files_watch(10, 40, EPOLLIN, 40);
}

static void use_child_of_epoll(void)
{
	usleep(20000);
	give(20, 1);
	must(ready(12, 1) == 1 && ready(10, 20) == 1);
	take(20);
	give(24, 1);
	must(ready(10, 40) == 4);
	take(24);
}

static void wait_a_bit(void)
{
	usleep(100000);
}

static void test_epoll(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_epoll, .use = use_epoll });
	files_cycle(&(struct files_test){ .make = make_epoll, .make_child = child_of_epoll,
					  .use = wait_a_bit, .use_child = use_child_of_epoll });
}

/* ---- EPOLLONESHOT ------------------------------------------------------------------------ */

static int far[2][2];			/* pipes of the test, with something in them */

/* 20 and 21 will have hung up, 22 has its peer in 23; 24 is not spent. */
static void make_spent(void)
{
	char path[64];
	int pair[2];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), far[i][0]);
		files_at(open(path, O_RDONLY), 20 + i);
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	files_at(pair[0], 22);
	files_at(pair[1], 23);
	files_at(eventfd(1, 0), 24);
	files_at(epoll_create1(0), 10);
	files_watch(10, 20, EPOLLIN | EPOLLONESHOT, 20);
	files_watch(10, 21, EPOLLIN | EPOLLET | EPOLLONESHOT, 21);
	files_watch(10, 22, EPOLLOUT | EPOLLONESHOT, 22);
	must(ready(10, 20) == 3 && ready(10, 0) == 0);
	files_watch(10, 24, EPOLLIN | EPOLLONESHOT, 24);
}

static void rearm(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLONESHOT, .data.u64 = fd };

	must(!epoll_ctl(10, EPOLL_CTL_MOD, fd, &event));
}

static void use_spent(void)
{
	must(ready(10, 24) == 1 && ready(10, 0) == 0);
	close(23);
	must(ready(10, 0) == 0);
	rearm(20, EPOLLIN);
	must(ready(10, 20) == 1);
	rearm(21, EPOLLIN | EPOLLET);
	must(ready(10, 21) == 1);
	rearm(22, EPOLLIN);
	must(ready(10, 22) == 1 && ready(10, 0) == 0);
}

/* The other process with the epoll has one number to itself, always ready. */
static void child_of_spent(void)
{
	files_at(eventfd(1, 0), 25);
	files_watch(10, 25, EPOLLIN, 25);
}

static void use_shared_spent(void)
{
	must(ready(10, 24) == 2 && ready(10, 25) == 1);
}

static void wait_for_other(void)
{
	close(23);
	must(files_hears(22, ""));
}

static void test_spent(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(far[i]), 0);
		assert_int_equal(write(far[i][1], "x", 1), 1);
	}
	files_cycle(&(struct files_test){ .make = make_spent, .use = use_spent });
	files_cycle(&(struct files_test){ .make = make_spent, .make_child = child_of_spent,
					  .use = use_shared_spent, .use_child = wait_for_other });
	for (int i = 0; i < 2; i++) {
		close(far[i][0]);
		close(far[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epoll), cmocka_unit_test(test_spent),
	};

	return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
