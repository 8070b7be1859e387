// SPDX-License-Identifier: GPL-2.0
/*
 * mlockall(2): everything there is and everything to come is locked, also what
 * cannot be in memory: the guard page of a thread, a reserve without access, and
 * what lies beyond the end of a mapped file.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"

#define LENGTH	(64 << 10)

static void *wait_too(void *arg)
{
	check_wait();
	return arg;
}

static char *map_beyond_end(void)
{
	int fd = open("short_file", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	char *map;

	NEED(fd >= 0 && !ftruncate(fd, 4096));
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	return map;
}

int main(int argc, char **argv)
{
	long long before;
	pthread_t thread;
	char *map, *reserve, *file;

	check_begin(argc, argv);
	reserve = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(reserve != MAP_FAILED);
	file = map_beyond_end();
	NEED(!pthread_create(&thread, NULL, wait_too, NULL));
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		check_skip("may not lock memory");
	before = check_status("VmLck", 10);
	check_ready();
	check_wait();
	CHECK(!pthread_join(thread, NULL));
	CHECK(check_status("VmLck", 10) == before);
	CHECK(!mprotect(reserve, LENGTH, PROT_READ | PROT_WRITE));
	reserve[0] = file[0] = 1;
	map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED && check_status("VmLck", 10) >= before + 1024);
	CHECK(!munlockall() && check_status("VmLck", 10) == 0);
	return check_end();
}
