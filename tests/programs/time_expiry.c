// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that are set once and again and expire all the time, each waited for without
 * a limit: that of the process, one of a thread, and one of all.  Other threads only
 * make it take longer to save them.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "check.h"

#define IDLE	40
#define BY_THREAD	(SIGRTMIN + 1)
#define BY_PROCESS	(SIGRTMIN + 2)

static void wait_for(int signal)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	while (sigwaitinfo(&set, &info) < 0)
		CHECK(errno == EINTR);
}

static timer_t make(int notify, int signal)
{
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = signal };
	int id;

	event._sigev_un._tid = syscall(SYS_gettid);
	NEED(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
	return (timer_t)(long)id;
}

static void *use_posix(void *argument)
{
	int signal = (long)argument;
	timer_t timer = make(signal == BY_THREAD ? SIGEV_THREAD_ID : SIGEV_SIGNAL, signal);
	struct itimerspec set = { };

	for (long i = 0; !check_gone(); i++) {
		set.it_value.tv_nsec = 1000000 + i * 13 % 60 * 1000000;
		NEED(!syscall(SYS_timer_settime, (int)(long)timer, 0, &set, NULL));
		wait_for(signal);
	}
	return NULL;
}

static void *use_itimer(void *argument)
{
	struct itimerval set = { };

	for (long i = 0; !check_gone(); i++) {
		set.it_value.tv_usec = 1000 + i * 7 % 50 * 1000;
		NEED(!setitimer(ITIMER_REAL, &set, NULL));
		wait_for(SIGALRM);
	}
	return argument;
}

/* Forty that look often leave a slow machine no time for anything else. */
static void *idle(void *argument)
{
	while (!check_gone())
		check_sleep_ms(500);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread[3 + IDLE];
	sigset_t all;

	check_begin(argc, argv);
	sigfillset(&all);
	NEED(!sigprocmask(SIG_BLOCK, &all, NULL));
	NEED(!pthread_create(&thread[0], NULL, use_posix, (void *)(long)BY_THREAD));
	NEED(!pthread_create(&thread[1], NULL, use_posix, (void *)(long)BY_PROCESS));
	NEED(!pthread_create(&thread[2], NULL, use_itimer, NULL));
	for (int i = 3; i < 3 + IDLE; i++)
		NEED(!pthread_create(&thread[i], NULL, idle, NULL));
	check_ready();
	for (int i = 0; i < 3 + IDLE; i++)
		pthread_join(thread[i], NULL);
	return check_end();
}
