// SPDX-License-Identifier: GPL-2.0
/*
 * A statically linked program: kcr-build: -static
 * it has no dynamic linker, its own thread data and a heap.
 */
#include "check.h"

static __thread int own = 5;

int main(int argc, char **argv)
{
	char *heap = malloc(300000);

	check_begin(argc, argv);
	check_fill(heap, 300000, 1);
	check_ready();
	check_wait();
	CHECK(check_filled(heap, 300000, 1) && own == 5);
	heap = realloc(heap, 3000000);
	CHECK(heap && check_filled(heap, 300000, 1));
	free(heap);
	return check_end();
}
