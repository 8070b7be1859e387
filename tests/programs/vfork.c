// SPDX-License-Identifier: GPL-2.0
/*
 * A program that is in vfork(2) most of the time, waiting for a child that runs
 * another program for a moment.
 */
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	int status;

	check_begin(argc, argv);
	check_ready();
	do {
		pid_t child = vfork();

		if (!child) {
			execl("/bin/sleep", "sleep", "0.05", (char *)NULL);
			_exit(99);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	} while (!check_gone());
	return check_end();
}
