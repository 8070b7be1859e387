// SPDX-License-Identifier: GPL-2.0
/*
 * All resource limits, soft and hard, and one of them in effect.
 */
#include <sys/resource.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct rlimit saved[RLIM_NLIMITS], now;

	check_begin(argc, argv);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		NEED(!getrlimit(i, &saved[i]));
		if (saved[i].rlim_max > 1000000000)
			saved[i].rlim_max = 900000000 + i;
		if (saved[i].rlim_cur > saved[i].rlim_max)
			saved[i].rlim_cur = saved[i].rlim_max - 4096 * i;
		if (i == RLIMIT_NOFILE)
			saved[i].rlim_cur = 40;
		NEED(!setrlimit(i, &saved[i]));
	}
	check_ready();
	check_wait();
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		CHECK(!getrlimit(i, &now));
		CHECK(now.rlim_cur == saved[i].rlim_cur && now.rlim_max == saved[i].rlim_max);
	}
	CHECK(dup2(0, 40) < 0 && errno == EBADF);
	CHECK(dup2(0, 39) == 39);
	return check_end();
}
