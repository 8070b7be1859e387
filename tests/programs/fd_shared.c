// SPDX-License-Identifier: GPL-2.0
/*
 * An offset that a parent and its child share since fork(2), and a descriptor table
 * that two processes share altogether (CLONE_FILES).
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static char path[] = "/tmp/kcr-shared.XXXXXX";
static int step[2], made = -1;

static int sharer(void *argument)
{
	char byte;

	(void)argument;
	if (read(step[0], &byte, 1) != 1)
		return 1;
	made = open(path, O_RDONLY);
	return made >= 0 && lseek(made, 5, SEEK_SET) == 5 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static char stack[65536];
	pid_t child, shares;
	int fd, status;

	check_begin(argc, argv);
	fd = mkstemp(path);
	NEED(fd >= 0 && write(fd, "0123456789", 10) == 10 && !pipe(step));
	child = fork();
	if (!child) {
		check_wait();
		CHECK(lseek(fd, 0, SEEK_CUR) == 10);
		CHECK(lseek(fd, 3, SEEK_SET) == 3);
		_exit(check_end());
	}
	shares = clone(sharer, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	NEED(child > 0 && shares > 0);
	check_ready();
	check_wait();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(lseek(fd, 0, SEEK_CUR) == 3);
	CHECK(write(step[1], "x", 1) == 1);
	CHECK(waitpid(shares, &status, 0) == shares && status == 0);
	CHECK(lseek(step[1] + 1, 0, SEEK_CUR) == 5);	/* the one that the other opened */
	unlink(path);
	return check_end();
}
