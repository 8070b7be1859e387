// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of huge pages from the pool, private and shared.
 */
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(2 << 20)

int main(int argc, char **argv)
{
	char *private, *shared;

	check_begin(argc, argv);
	private = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	shared = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (private == MAP_FAILED || shared == MAP_FAILED)
		check_skip("no huge pages in the pool");
	check_fill(private, LENGTH, 70);
	check_fill(shared, LENGTH, 71);
	check_ready();
	check_wait();
	CHECK(check_filled(private, LENGTH, 70) && check_filled(shared, LENGTH, 71));
	CHECK(munmap(private, 4096) < 0 && errno == EINVAL);
	check_fill(private, LENGTH, 72);
	check_fill(shared, LENGTH, 73);
	CHECK(check_filled(private, LENGTH, 72) && check_filled(shared, LENGTH, 73));
	CHECK(!munmap(private, LENGTH) && !munmap(shared, LENGTH));
	return check_end();
}
