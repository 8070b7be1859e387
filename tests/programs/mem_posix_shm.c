// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX shared memory, mapped by two processes and gone by name in one case.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define LENGTH	(4 * 4096)

static char *make(const char *name, int keep)
{
	int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	char *map;

	NEED(fd >= 0 && !ftruncate(fd, LENGTH));
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	if (!keep)
		shm_unlink(name);
	return map;
}

int main(int argc, char **argv)
{
	char named[64], unnamed[64];
	char *a, *b;
	int status;
	pid_t child;

	check_begin(argc, argv);
	snprintf(named, sizeof(named), "/kcr-named-%d", getpid());
	snprintf(unnamed, sizeof(unnamed), "/kcr-unnamed-%d", getpid());
	a = make(named, 1);
	b = make(unnamed, 0);
	check_fill(a, LENGTH, 50);
	check_fill(b, LENGTH, 51);
	child = fork();
	if (!child) {
		check_wait();
		while (!check_filled(a, LENGTH, 52) || !check_filled(b, LENGTH, 53))
			usleep(1000);
		_exit(0);
	}
	check_ready();
	check_wait();
	CHECK(check_filled(a, LENGTH, 50) && check_filled(b, LENGTH, 51));
	check_fill(a, LENGTH, 52);
	check_fill(b, LENGTH, 53);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!shm_unlink(named));
	return check_end();
}
