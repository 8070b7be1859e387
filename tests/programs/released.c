// SPDX-License-Identifier: GPL-2.0
/*
 * A bit of everything, for the images that later releases restart (tests/released): memory,
 * threads, a pipe and an eventfd with something in them, a pending signal, a timer.
 * Static, as the machine that it is restarted on has other libraries.  kcr-build: -static
 */
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tests/programs/check.h"

#define SIZE	(64 << 10)

static volatile sig_atomic_t alarms, pending;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

static void count_pending(int number)
{
	(void)number;
	pending++;
}

/* Counts in a register, of the FPU at that, as long as it is asked to. */
static void *count(void *counted)
{
	sigset_t all;
	double sum = 0;

	sigfillset(&all);
	NEED(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	while (!check_gone()) {
		for (int i = 0; i < 1000; i++)
			sum += 1;
		check_sleep_ms(5);
	}
	*(double *)counted = sum;
	return counted;
}

static void set_up_signals(void)
{
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	NEED(signal(SIGALRM, count_alarm) != SIG_ERR && signal(SIGUSR1, count_pending) != SIG_ERR);
	NEED(!pthread_sigmask(SIG_BLOCK, &blocked, NULL) && !raise(SIGUSR1));
	NEED(!setitimer(ITIMER_REAL, &often, NULL));
}

static void check_signals(void)
{
	const struct timespec second = { .tv_sec = 1 };
	struct itimerval none = { 0 };
	sigset_t blocked;
	int before = alarms;

	while (alarms < before + 3)
		nanosleep(&second, NULL);
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	CHECK(!pending);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) && pending == 1);
}

int main(int argc, char **argv)
{
	static char initialised[SIZE] = { 1 };
	char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2], event = eventfd(41, 0);
	double counted = 0;
	uint64_t value;
	pthread_t thread;
	char text[8];

	check_begin(argc, argv);
	NEED(mapped != MAP_FAILED && event >= 0 && !pipe(ends) && write(ends[1], "inside", 7) == 7);
	check_fill(mapped, SIZE, 1);
	check_fill(initialised, SIZE, 2);
	NEED(!pthread_create(&thread, NULL, count, &counted));
	set_up_signals();
	check_ready();
	while (!check_gone())
		usleep(20000);
	CHECK(check_filled(mapped, SIZE, 1) && check_filled(initialised, SIZE, 2));
	CHECK(read(ends[0], text, sizeof(text)) == 7 && !strcmp(text, "inside"));
	CHECK(read(event, &value, sizeof(value)) == sizeof(value) && value == 41);
	check_signals();
	CHECK(!pthread_join(thread, NULL) && counted >= 1000);
	return check_end();
}
