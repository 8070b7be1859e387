// SPDX-License-Identifier: GPL-2.0
/*
 * The vdso: the C library calls it for the time and the processor, before and after.
 */
#include <sched.h>
#include <sys/time.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct timespec before, after, real;
	struct timeval day;

	check_begin(argc, argv);
	NEED(!clock_gettime(CLOCK_MONOTONIC, &before));
	check_ready();
	do {
		for (int i = 0; i < 1000; i++)
			CHECK(!clock_gettime(CLOCK_MONOTONIC, &after));
	} while (!check_gone());
	CHECK(after.tv_sec > before.tv_sec ||
	      (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
	CHECK(!clock_gettime(CLOCK_REALTIME, &real) && !gettimeofday(&day, NULL));
	CHECK(day.tv_sec - real.tv_sec < 60 && day.tv_sec >= real.tv_sec);
	CHECK(time(NULL) >= real.tv_sec - 1);	/* of the last tick */
	CHECK(sched_getcpu() >= 0);
	return check_end();
}
