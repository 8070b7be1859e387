// SPDX-License-Identifier: GPL-2.0
/*
 * Parents that wait for their children, three generations deep, two children each:
 * numbers, parents and exit statuses stay right, and more can be made.
 */
#include <sys/wait.h>

#include "check.h"

static int ready_pipe[2];

static int node(int depth)
{
	pid_t child[2], self = getpid(), parent = getppid();
	int status;

	for (int i = 0; i < 2 && depth; i++) {
		child[i] = fork();
		NEED(child[i] >= 0);
		if (!child[i])
			_exit(node(depth - 1) ? 100 : 10 * depth + i);
	}
	NEED(write(ready_pipe[1], "", 1) == 1);
	for (int i = 0; i < 2 && depth; i++) {
		CHECK(waitpid(child[i], &status, 0) == child[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 10 * depth + i);
	}
	if (!depth)
		check_wait();
	CHECK(getpid() == self && getppid() == parent);
	return check_end();
}

int main(int argc, char **argv)
{
	pid_t child;
	int status;
	char byte;

	check_begin(argc, argv);
	NEED(!pipe(ready_pipe));
	child = fork();
	if (!child)
		return node(3);
	for (int i = 0; i < 15; i++)
		NEED(read(ready_pipe[0], &byte, 1) == 1);
	check_ready();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	child = fork();
	if (!child)
		_exit(3);
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
	return check_end();
}
