// SPDX-License-Identifier: GPL-2.0
/*
 * A private mapping of a file: pages written to are the program's own, the others
 * are the file's, and the file does not change.
 */
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(16 * 4096)

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-private.XXXXXX";
	static char contents[LENGTH];
	char *map;
	int fd;

	check_begin(argc, argv);
	fd = mkstemp(path);
	check_fill(contents, LENGTH, 3);
	NEED(fd >= 0 && write(fd, contents, LENGTH) == LENGTH);
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	for (int page = 0; page < 16; page += 2)
		check_fill(map + page * 4096, 4096, 1000 + page);
	check_ready();
	check_wait();
	for (int page = 0; page < 16; page++)
		CHECK(page % 2 ? !memcmp(map + page * 4096, contents + page * 4096, 4096) :
				 check_filled(map + page * 4096, 4096, 1000 + page));
	memset(map, 1, LENGTH);
	CHECK(!madvise(map, LENGTH, MADV_DONTNEED) && !memcmp(map, contents, LENGTH));
	fd = open(path, O_RDONLY);
	memset(contents, 0, LENGTH);
	CHECK(read(fd, contents, LENGTH) == LENGTH && check_filled(contents, LENGTH, 3));
	unlink(path);
	return check_end();
}
