// SPDX-License-Identifier: GPL-2.0
/*
 * The heap made by brk(2): contents, its end, growing and shrinking it.
 */
#include "check.h"

int main(int argc, char **argv)
{
	const size_t length = 1 << 18;
	char *start, *end;

	check_begin(argc, argv);
	start = sbrk(length);
	NEED(start != (void *)-1);
	check_fill(start, length, 5);
	end = sbrk(0);
	check_ready();
	check_wait();
	CHECK(sbrk(0) == end);
	CHECK(check_filled(start, length, 5));
	CHECK(sbrk(length) == end);
	check_fill(end, length, 6);
	CHECK(check_filled(start, length, 5) && check_filled(end, length, 6));
	CHECK(sbrk(-(intptr_t)length) != (void *)-1 && sbrk(0) == end);
	return check_end();
}
