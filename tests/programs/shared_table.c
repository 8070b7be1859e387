// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes that share their table of descriptors (CLONE_FILES): each sees what
 * the other opens.
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static int step[2];

static int sharer(void *argument)
{
	char byte;

	(void)argument;
	return read(step[0], &byte, 1) == 1 && dup2(step[0], 50) == 50 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static char stack[65536];
	int status;
	pid_t child;

	check_begin(argc, argv);
	NEED(!pipe(step));
	child = clone(sharer, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	NEED(child > 0);
	check_ready();
	check_wait();
	CHECK(write(step[1], "x", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(fcntl(50, F_GETFD) == 0);
	return check_end();
}
