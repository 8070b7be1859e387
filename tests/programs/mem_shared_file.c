// SPDX-License-Identifier: GPL-2.0
/*
 * A shared mapping of a file: what is written to memory is in the file.
 */
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(8 * 4096)

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-shared.XXXXXX";
	static char contents[LENGTH];
	char *map;
	int fd;

	check_begin(argc, argv);
	fd = mkstemp(path);
	NEED(fd >= 0 && !ftruncate(fd, 2 * LENGTH));
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	NEED(map != MAP_FAILED);
	check_fill(map, LENGTH, 21);
	check_ready();
	check_wait();
	CHECK(check_filled(map, LENGTH, 21));
	check_fill(map, LENGTH, 22);
	CHECK(pread(fd, contents, LENGTH, 4096) == LENGTH);
	CHECK(check_filled(contents, LENGTH, 22));
	CHECK(pwrite(fd, "changed", 7, 4096 + 100) == 7 && !memcmp(map + 100, "changed", 7));
	unlink(path);
	return check_end();
}
