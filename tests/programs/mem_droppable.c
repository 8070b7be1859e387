// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the kernel may drop (MAP_DROPPABLE), where the state of random numbers
 * is: after a restart, when there is a file `restarted`, it is empty.
 */
#include <sys/mman.h>

#include "check.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE	0x08
#endif
#define SIZE	(8 * 4096)

int main(int argc, char **argv)
{
	static const char zero[SIZE];
	char *memory;

	check_begin(argc, argv);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		check_skip("this kernel has no MAP_DROPPABLE");
	memset(memory, 'x', SIZE);
	check_ready();
	check_wait();
	CHECK(!access("restarted", F_OK) == !memcmp(memory, zero, SIZE));
	memset(memory, 'y', SIZE);
	CHECK(memory[SIZE - 1] == 'y');
	return check_end();
}
