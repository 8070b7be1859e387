// SPDX-License-Identifier: GPL-2.0
/*
 * Transparent huge pages, partly written to.
 */
#include <sys/mman.h>

#include "check.h"

#define HUGE	(2 << 20)

int main(int argc, char **argv)
{
	char *map, *start;

	check_begin(argc, argv);
	map = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(map != MAP_FAILED);
	start = (char *)(((uintptr_t)map + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(start, 2 * HUGE, MADV_HUGEPAGE))
		check_skip("no transparent huge pages");
	check_fill(start, HUGE, 80);
	check_fill(start + HUGE + 8192, 4096, 81);
	check_ready();
	check_wait();
	CHECK(check_filled(start, HUGE, 80) && check_filled(start + HUGE + 8192, 4096, 81));
	CHECK(!start[HUGE] && !start[2 * HUGE - 1]);
	check_fill(start, HUGE, 82);
	CHECK(check_filled(start, HUGE, 82));
	CHECK(!munmap(start + 4096, 4096) && check_filled(start, 4096, 82));
	return check_end();
}
