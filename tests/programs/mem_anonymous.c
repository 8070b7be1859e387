// SPDX-License-Identifier: GPL-2.0
/*
 * Private anonymous memory: many small ranges with holes, pages that were never
 * touched, pages of zeros, and read-only ones.
 */
#include <sys/mman.h>

#include "check.h"

#define PAGE	4096
#define COUNT	64

int main(int argc, char **argv)
{
	char *range[COUNT], *sparse;

	check_begin(argc, argv);
	for (int i = 0; i < COUNT; i++) {
		size_t length = (i % 7 + 1) * PAGE;

		range[i] = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(range[i] != MAP_FAILED);
		munmap(range[i] + length, PAGE);
		check_fill(range[i], length, i);
		if (i % 3 == 0)
			NEED(!mprotect(range[i], length, PROT_READ));
	}
	sparse = mmap(NULL, 1000 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(sparse != MAP_FAILED);
	for (int i = 0; i < 1000; i += 100)
		sparse[i * PAGE + i] = i % 300 ? 'x' : 0;
	check_ready();
	check_wait();
	for (int i = 0; i < COUNT; i++) {
		size_t length = (i % 7 + 1) * PAGE;

		CHECK(check_filled(range[i], length, i));
		CHECK(i % 3 || !mprotect(range[i], length, PROT_READ | PROT_WRITE));
		check_fill(range[i], length, i + 1000);
		CHECK(check_filled(range[i], length, i + 1000));
	}
	for (int i = 0; i < 1000 * PAGE; i++) {
		int page = i / PAGE;
		char expected = page % 100 == 0 && i % PAGE == page && page % 300 ? 'x' : 0;

		if (sparse[i] != expected) {
			CHECK(sparse[i] == expected);
			break;
		}
	}
	CHECK(!madvise(sparse, 1000 * PAGE, MADV_DONTNEED) && !sparse[100 * PAGE + 100]);
	return check_end();
}
