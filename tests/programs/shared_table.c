// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes that share their table of descriptors (CLONE_FILES): each sees what
 * the other opens.  With the argument `folder`: or their working folder and umask (CLONE_FS).
 */
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static int step[2];

static int sharer(void *argument)
{
	char byte;

	(void)argument;
	if (read(step[0], &byte, 1) != 1)
		return 1;
	umask(0123);
	return dup2(step[0], 50) == 50 ? 0 : 2;
}

int main(int argc, char **argv)
{
	static char stack[65536];
	int status;
	bool folder;
	pid_t child;

	check_begin(argc, argv);
	NEED(!pipe(step));
	folder = argc > 3 && !strcmp(argv[3], "folder");
	child = clone(sharer, stack + sizeof(stack), (folder ? CLONE_FS : CLONE_FILES) | SIGCHLD, NULL);
	NEED(child > 0);
	check_ready();
	check_wait();
	CHECK(write(step[1], "x", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(folder ? umask(0) == 0123 : fcntl(50, F_GETFD) == 0);
	return check_end();
}
