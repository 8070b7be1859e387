// SPDX-License-Identifier: GPL-2.0
/*
 * An offset that a parent and its child share since fork(2), moved by both.
 */
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-shared.XXXXXX", text[4];
	int fd, status;
	pid_t child;

	check_begin(argc, argv);
	fd = mkstemp(path);
	NEED(fd >= 0 && write(fd, "0123456789", 10) == 10);
	child = fork();
	NEED(child >= 0);
	if (!child) {
		check_wait();
		CHECK(lseek(fd, 0, SEEK_CUR) == 10 && lseek(fd, 3, SEEK_SET) == 3);
		_exit(check_end());
	}
	check_ready();
	check_wait();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(lseek(fd, 0, SEEK_CUR) == 3 && read(fd, text, 2) == 2 && !memcmp(text, "34", 2));
	unlink(path);
	return check_end();
}
