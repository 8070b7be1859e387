// SPDX-License-Identifier: GPL-2.0
/* Clocks in nanoseconds.  See clock.h. */
#include "proc/clock.h"

#include <limits.h>

#define NS_PER_S	1000000000u
#define NS_PER_MS	1000000u

uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int ms_until(uint64_t time_ns)
{
	uint64_t time = now_ns(), left;

	if (time_ns <= time)
		return 0;
	left = (time_ns - time) / NS_PER_MS + 1;
	return left < INT_MAX ? left : INT_MAX;
}
