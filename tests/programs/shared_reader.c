// SPDX-License-Identifier: GPL-2.0
/* Has a file mapped shared that it may only read, as the C library has its caches. */
#include <sys/mman.h>

#include "check.h"

int main(int argc, char **argv)
{
	const char *text;
	int fd;

	check_begin(argc, argv);
	NEED(argc == 4);
	fd = open(argv[3], O_RDONLY);
	text = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	NEED(text != MAP_FAILED && !strncmp(text, "old", 3));
	close(fd);
	check_ready();
	check_wait();
	CHECK(!strncmp(text, "new", 3));
	return !!check_failures;
}
