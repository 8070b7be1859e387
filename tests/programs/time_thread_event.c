// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that start a thread (SIGEV_THREAD), at intervals so short that they expire
 * while the process is rebuilt: the C library has a signal of its own for them, which
 * its sets of signals leave out.
 */
#include <signal.h>

#include "check.h"

#define TIMERS	3

static volatile unsigned long expired[TIMERS];

static void on_expiry(union sigval value)
{
	__atomic_add_fetch(&expired[value.sival_int], 1, __ATOMIC_RELAXED);
}

static void start(int number, long interval_ns)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = number,
		.sigev_notify_function = on_expiry,
	};
	struct itimerspec set = { { 0, interval_ns }, { 0, interval_ns } };
	timer_t timer;

	NEED(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	NEED(!timer_settime(timer, 0, &set, NULL));
}

static bool goes_on(int number)
{
	unsigned long before = expired[number];

	for (int i = 0; i < 500; i++) {
		check_sleep_ms(10);
		if (expired[number] > before + 3)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	for (int i = 0; i < TIMERS; i++)
		start(i, 1000000 << i);
	for (int i = 0; i < TIMERS; i++)
		NEED(goes_on(i));
	check_ready();
	check_wait();
	for (int i = 0; i < TIMERS; i++)
		CHECK(goes_on(i));
	return !!check_failures;
}
