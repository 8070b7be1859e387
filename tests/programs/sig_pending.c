// SPDX-License-Identifier: GPL-2.0
/*
 * Blocked signals that wait: of the process and of a thread, ordinary ones and a
 * queue of real-time ones with values, in order, with what their siginfo says.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "check.h"

static volatile pid_t tid;

static int take(int signal, siginfo_t *info)
{
	const struct timespec now = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	memset(info, 0, sizeof(*info));
	/* the C library's own changes si_code */
	return syscall(SYS_rt_sigtimedwait, &set, info, &now, 8);
}

static void *other(void *argument)
{
	siginfo_t info;

	tid = syscall(SYS_gettid);
	check_wait();
	CHECK(take(SIGRTMIN + 1, &info) == SIGRTMIN + 1);
	CHECK(info.si_code == SI_QUEUE && info.si_value.sival_int == 50);
	CHECK(take(SIGUSR2, &info) == SIGUSR2);
	CHECK(info.si_code == SI_TKILL && info.si_pid == getpid());
	CHECK(take(SIGUSR2, &info) < 0 && errno == EAGAIN);
	return argument;
}

int main(int argc, char **argv)
{
	union sigval value;
	siginfo_t info;
	pthread_t thread;
	sigset_t all;

	check_begin(argc, argv);
	sigfillset(&all);
	NEED(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	NEED(!pthread_create(&thread, NULL, other, NULL));
	while (!tid)
		check_sleep_ms(10);
	for (int i = 0; i < 5; i++) {
		value.sival_ptr = (void *)(0x100000000ul + i);
		NEED(!sigqueue(getpid(), SIGRTMIN + 5, value));
	}
	NEED(!kill(getpid(), SIGTERM) && !kill(getpid(), SIGTERM));
	value.sival_int = 50;
	NEED(!pthread_sigqueue(thread, SIGRTMIN + 1, value) && !pthread_kill(thread, SIGUSR2));
	check_ready();
	check_wait();
	for (int i = 0; i < 5; i++) {
		CHECK(take(SIGRTMIN + 5, &info) == SIGRTMIN + 5 && info.si_code == SI_QUEUE);
		CHECK(info.si_value.sival_ptr == (void *)(0x100000000ul + i));
		CHECK(info.si_pid == getpid() && info.si_uid == getuid());
	}
	CHECK(take(SIGRTMIN + 5, &info) < 0);
	CHECK(take(SIGTERM, &info) == SIGTERM && info.si_code == SI_USER);
	CHECK(info.si_pid == getpid());
	CHECK(take(SIGTERM, &info) < 0);
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
