// SPDX-License-Identifier: GPL-2.0
/*
 * READY GO: a mapping that ends in the neighbourhood of what the kernel writes for the
 * thread, which a lazy restart stores at once, is moved as a whole at GO.
 */
#include <sys/mman.h>

#include "check.h"

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
#define HUGE	(2ul << 20)
#define BEFORE	(8ul << 20)

int main(int argc, char **argv)
{
	uintptr_t near = (uintptr_t)&errno & ~(HUGE - 1);
	size_t length = BEFORE + HUGE - PAGE;
	uint8_t *at, *moved;

	check_begin(argc, argv);
	do {
		at = mmap((void *)(near - BEFORE), length, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			  MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		length -= at == MAP_FAILED ? PAGE : 0;
	} while (at == MAP_FAILED && length > BEFORE);
	if (at == MAP_FAILED)
		check_skip("there is no room beside the thread's memory");
	for (size_t i = 0; i < length; i += PAGE)
		at[i] = (uint8_t)(i / PAGE * 7 + 1);
	check_ready();
	check_wait();
	moved = mremap(at, length, 2 * length, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED);
	for (size_t i = 0; moved != MAP_FAILED && i < length; i += PAGE)
		CHECK(moved[i] == (uint8_t)(i / PAGE * 7 + 1));
	return check_end();
}
