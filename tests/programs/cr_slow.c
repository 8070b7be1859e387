/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A callback that takes fifteen seconds after a checkpoint, and not after a restart.  A thread
 * counts, and writes the number to the file `count`: after a restart that must not be ahead of
 * what the program remembers, or it ran on between its image and its end.
 */
#include <libcr.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tests/programs/check.h"

static _Atomic uint64_t counter;
static int count_fd;

static int callback(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);
	uint64_t written;

	(void)arg;
	CHECK(ret >= 0);
	if (!ret) {
		sleep(15);
		return 0;
	}
	CHECK(pread(count_fd, &written, sizeof(written), 0) == sizeof(written));
	if (written > counter + 1)
		fprintf(stderr, "# written: %llu, remembered: %llu\n", (unsigned long long)written,
			(unsigned long long)counter);
	CHECK(written <= counter + 1);
	return 0;
}

static void *count(void *unused)
{
	for (;;) {
		uint64_t next = counter + 1;

		CHECK(pwrite(count_fd, &next, sizeof(next), 0) == sizeof(next));
		counter = next;
		usleep(10000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED((count_fd = open("count", O_RDWR | O_CREAT, 0666)) >= 0);
	NEED(cr_init() >= 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	NEED(!pthread_create(&thread, NULL, count, NULL));
	while (!counter)
		usleep(1000);
	check_ready();
	check_wait();
	return check_end();
}
