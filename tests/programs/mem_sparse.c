// SPDX-License-Identifier: GPL-2.0
/*
 * Sixteen gigabytes of address space of which sixty-four pages are touched, and a
 * range that must not be accounted for (MAP_NORESERVE).
 */
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(16ull << 30)

int main(int argc, char **argv)
{
	char *map;

	check_begin(argc, argv);
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	NEED(map != MAP_FAILED);
	madvise(map, LENGTH, MADV_NOHUGEPAGE);	/* or every page touched would be 2 MB */
	for (uint64_t i = 0; i < 64; i++)
		check_fill(map + i * (LENGTH / 64), 4096, i);
	check_ready();
	check_wait();
	for (uint64_t i = 0; i < 64; i++)
		CHECK(check_filled(map + i * (LENGTH / 64), 4096, i));
	map[LENGTH - 1] = 1;
	CHECK(map[LENGTH - 1] == 1 && map[LENGTH - 4097] == 0);
	return check_end();
}
