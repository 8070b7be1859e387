// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of huge pages from the pool, private and shared.  With a third argument, half
 * of the private one is written to all the time.
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
	if (argc > 3)
		check_fill(private + LENGTH / 2, LENGTH / 2, 74);
	check_ready();
	for (uint64_t round = 1; argc > 3 && !check_gone(); round++)
		check_fill(private, LENGTH / 2, round);
	check_wait();
	if (argc > 3) {
		CHECK(check_filled(private + LENGTH / 2, LENGTH / 2, 74));
		check_fill(private, LENGTH, 70);
	}
	CHECK(check_filled(private, LENGTH, 70) && check_filled(shared, LENGTH, 71));
	CHECK(munmap(private, 4096) < 0 && errno == EINVAL);
	check_fill(private, LENGTH, 72);
	check_fill(shared, LENGTH, 73);
	CHECK(check_filled(private, LENGTH, 72) && check_filled(shared, LENGTH, 73));
	CHECK(!munmap(private, LENGTH) && !munmap(shared, LENGTH));
	return check_end();
}
