// SPDX-License-Identifier: GPL-2.0
/* More timers than are looked at at once, on clocks of all kinds, armed and not. */
#include <pthread.h>
#include <signal.h>

#include "check.h"

#define TIMERS	600

static timer_t timer[TIMERS];

static clockid_t clock_of(int i)
{
	clockid_t cpu;

	switch (i % 5) {
	case 0:
		return CLOCK_MONOTONIC;
	case 1:
		return CLOCK_REALTIME;
	case 2:
		return CLOCK_PROCESS_CPUTIME_ID;
	case 3:
		NEED(!pthread_getcpuclockid(pthread_self(), &cpu));
		return cpu;
	default:
		NEED(!clock_getcpuclockid(getpid(), &cpu));
		return cpu;
	}
}

static bool is_armed(int i)
{
	return i % 7;
}

static void set_up(int i)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec time = {
		.it_value.tv_sec = is_armed(i) ? 10000 + i : 0, .it_interval.tv_sec = i + 1,
	};

	NEED(!timer_create(clock_of(i), &event, &timer[i]));
	NEED(!timer_settime(timer[i], 0, &time, NULL));
}

static void check(int i)
{
	struct itimerspec time;

	CHECK(!timer_gettime(timer[i], &time));
	if (!is_armed(i)) {
		CHECK(!time.it_value.tv_sec && !time.it_value.tv_nsec);
		return;
	}
	CHECK(time.it_interval.tv_sec == i + 1);
	CHECK(time.it_value.tv_sec <= 10000 + i && time.it_value.tv_sec > 8000 + i);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	for (int i = 0; i < TIMERS; i++)
		set_up(i);
	check_ready();
	check_wait();
	for (int i = 0; i < TIMERS; i++)
		check(i);
	return check_end();
}
