// SPDX-License-Identifier: GPL-2.0
/*
 * The stack: what is on it, growth after the restart, and its limit.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

static int deep(int depth)
{
	volatile char frame[16384];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = depth + i;
	if (depth && deep(depth - 1))
		return 1;
	for (size_t i = 0; i < sizeof(frame); i++)
		if (frame[i] != (char)(depth + i))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t local[2048];
	int status;
	pid_t child;

	check_begin(argc, argv);
	check_fill(local, sizeof(local), 1);
	NEED(!deep(20));
	check_ready();
	check_wait();
	CHECK(check_filled(local, sizeof(local), 1));
	CHECK(!deep(300));	/* 5 MB: it must grow */
	child = fork();
	if (!child)
		_exit(deep(100000));
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	return check_end();
}
