// SPDX-License-Identifier: GPL-2.0
/*
 * A grandchild whose parent has died and which was handed to a child subreaper
 * inside the tree: it stays its child and can be waited for.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	pid_t self = getpid(), child, orphan;
	int number[2], status;

	check_begin(argc, argv);
	NEED(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	NEED(!pipe(number));
	child = fork();
	if (!child) {
		orphan = fork();
		if (!orphan) {
			while (getppid() != self)
				usleep(1000);
			orphan = getpid();
			NEED(write(number[1], &orphan, sizeof(orphan)) == sizeof(orphan));
			check_wait();
			CHECK(getppid() == self);
			_exit(check_end() ? 1 : 42);
		}
		_exit(0);
	}
	NEED(waitpid(child, NULL, 0) == child);
	NEED(read(number[0], &orphan, sizeof(orphan)) == sizeof(orphan));
	check_ready();
	CHECK(waitpid(orphan, &status, 0) == orphan);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	CHECK(prctl(PR_GET_CHILD_SUBREAPER, &status, 0, 0, 0) == 0 && status == 1);
	return check_end();
}
