// SPDX-License-Identifier: GPL-2.0
/*
 * A program that replaces itself by itself all the time and counts that.
 */
#include "check.h"

int main(int argc, char **argv)
{
	char count[16], total[16];
	char *next[] = { argv[0], argv[1], argv[2], count, total, NULL };
	pid_t first = argc > 4 ? atoi(argv[4]) : getpid();
	int n = argc > 3 ? atoi(argv[3]) : 0;

	check_begin(argc, argv);
	CHECK(getpid() == first);
	if (n == 5)
		check_ready();
	if (n > 5 && check_gone())
		return check_end();
	snprintf(count, sizeof(count), "%d", n + 1);
	snprintf(total, sizeof(total), "%d", first);
	execv("/proc/self/exe", next);
	return 2;
}
