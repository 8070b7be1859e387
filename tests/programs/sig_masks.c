// SPDX-License-Identifier: GPL-2.0
/*
 * Blocked signals, different in each of two threads, and one of them in sigsuspend.
 */
#include <pthread.h>
#include <signal.h>

#include "check.h"

static volatile int suspended, called;

static void on_signal(int signal)
{
	called = signal;
}

static void *other(void *argument)
{
	sigset_t mask, none, now;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGRTMAX);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigemptyset(&none);
	suspended = 1;
	CHECK(sigsuspend(&none) < 0 && errno == EINTR);
	CHECK(called == SIGUSR1);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(!memcmp(&now, &mask, 8));
	return argument;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t mask, now;
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, 40);
	NEED(!pthread_sigmask(SIG_SETMASK, &mask, NULL));
	NEED(!pthread_create(&thread, NULL, other, NULL));
	while (!suspended)
		check_sleep_ms(10);
	check_ready();
	check_wait();
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(!memcmp(&now, &mask, 8) && !called);
	CHECK(!pthread_kill(thread, SIGUSR1) && !pthread_join(thread, NULL));
	return check_end();
}
