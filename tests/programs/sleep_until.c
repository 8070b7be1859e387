// SPDX-License-Identifier: GPL-2.0
/*
 * Two threads sleep until a moment that is in the file of the third argument, one
 * on CLOCK_MONOTONIC and one on CLOCK_BOOTTIME.  A moment in another boot of the
 * machine is made by changing the file.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

#define SECONDS	8

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
static struct timespec *until, start[2];

static void *sleep_until(void *argument)
{
	const size_t i = (size_t)argument;
	struct timespec now;

	CHECK(clock_nanosleep(clocks[i], TIMER_ABSTIME, &until[i], NULL) == 0);
	clock_gettime(clocks[i], &now);
	CHECK((now.tv_sec - start[i].tv_sec) * 1000000000ll + now.tv_nsec - start[i].tv_nsec >=
	      SECONDS * 1000000000ll);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd;

	check_begin(argc, argv);
	NEED(argc == 4);
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
	NEED(fd >= 0 && !ftruncate(fd, 4096));
	until = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(until != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		clock_gettime(clocks[i], &start[i]);
		until[i] = start[i];
		until[i].tv_sec += SECONDS;
	}
	NEED(!pthread_create(&thread, NULL, sleep_until, (void *)1));
	check_ready();
	sleep_until((void *)0);
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
