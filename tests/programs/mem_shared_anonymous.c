// SPDX-License-Identifier: GPL-2.0
/*
 * Shared anonymous memory of a parent and its child, at one address and at another:
 * both go on seeing what the other writes.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define LENGTH	(32 * 4096)

int main(int argc, char **argv)
{
	volatile uint64_t *shared;
	int status;
	pid_t child;

	check_begin(argc, argv);
	shared = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(shared != MAP_FAILED);
	check_fill((char *)shared + 4096, LENGTH - 4096, 30);
	child = fork();
	if (!child) {
		shared = mremap((void *)shared, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
				(char *)shared + (64 << 20));
		NEED(shared != MAP_FAILED);
		shared[0] = 1;
		check_wait();
		CHECK(check_filled((char *)shared + 4096, LENGTH - 4096, 30));
		shared[1] = 4711;
		while (shared[2] != 815)
			usleep(1000);
		_exit(check_end());
	}
	while (!shared[0])
		usleep(1000);
	check_ready();
	check_wait();
	CHECK(check_filled((char *)shared + 4096, LENGTH - 4096, 30));
	while (shared[1] != 4711)
		usleep(1000);
	shared[2] = 815;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return check_end();
}
