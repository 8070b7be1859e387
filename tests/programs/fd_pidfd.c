// SPDX-License-Identifier: GPL-2.0
/*
 * A pidfd of a child that is in the tree, also watched by an epoll made before it.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 17 };
	struct pollfd poller;
	siginfo_t info;
	pid_t child;
	int epoll, fd;

	check_begin(argc, argv);
	epoll = epoll_create1(0);
	child = fork();
	if (!child)
		for (;;)
			pause();
	fd = syscall(SYS_pidfd_open, child, 0);
	NEED(child > 0 && fd >= 0 && epoll >= 0 && epoll < fd);
	NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	event.data.u64 = 0;
	check_ready();
	check_wait();
	poller = (struct pollfd){ fd, POLLIN, 0 };
	CHECK(poll(&poller, 1, 0) == 0);
	CHECK(!syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
	CHECK(poll(&poller, 1, -1) == 1);
	CHECK(epoll_wait(epoll, &event, 1, -1) == 1 && event.data.u64 == 17);
	CHECK(!waitid(P_PIDFD, fd, &info, WEXITED) && info.si_pid == child &&
	      info.si_status == SIGTERM);
	return check_end();
}
