// SPDX-License-Identifier: GPL-2.0
/* Clocks in nanoseconds.  See clock.h. */
#include "proc/clock.h"

#define NS_PER_S	1000000000u

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
