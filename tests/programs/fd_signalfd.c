// SPDX-License-Identifier: GPL-2.0
/*
 * signalfd: its mask, a signal that waits in it, and further ones.
 */
#include <signal.h>
#include <sys/signalfd.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	check_begin(argc, argv);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 4);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	NEED(fd >= 0 && !sigqueue(getpid(), SIGRTMIN + 4, (union sigval){ .sival_int = 5 }));
	check_ready();
	check_wait();
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
	CHECK(info.ssi_signo == (uint32_t)SIGRTMIN + 4 && info.ssi_int == 5);
	CHECK(read(fd, &info, sizeof(info)) < 0 && errno == EAGAIN);
	raise(SIGUSR1);
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	return check_end();
}
