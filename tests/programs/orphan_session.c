// SPDX-License-Identifier: GPL-2.0
/*
 * A process in the session whose parent has died and that init has adopted: in a
 * checkpoint of the session it is included and restored beside the rest.
 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	int up[2], down[2];
	pid_t child;
	char answer;

	check_begin(argc, argv);
	NEED(getsid(0) == getpid() || setsid() > 0);
	NEED(!pipe(up) && !pipe(down));
	child = fork();
	if (!child) {
		pid_t parent = getpid();

		if (!fork()) {
			pid_t adopter;

			while (getppid() == parent)
				usleep(1000);
			adopter = getppid();
			NEED(write(up[1], "r", 1) == 1);
			CHECK(read(down[0], &answer, 1) == 1 && answer == 'g');
			(void)adopter;
			CHECK(write(up[1], check_end() ? "n" : "y", 1) == 1);
			_exit(0);
		}
		_exit(0);
	}
	NEED(waitpid(child, NULL, 0) == child);
	NEED(read(up[0], &answer, 1) == 1);
	check_ready();
	check_wait();
	CHECK(write(down[1], "g", 1) == 1);
	CHECK(read(up[0], &answer, 1) == 1 && answer == 'y');
	return check_end();
}
