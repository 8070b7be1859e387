// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of a file that has been deleted: shared and private, two views of one.
 */
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(4 * 4096)

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-deleted.XXXXXX";
	char *shared, *again, *private;
	int fd;

	check_begin(argc, argv);
	fd = mkstemp(path);
	NEED(fd >= 0 && !ftruncate(fd, LENGTH));
	shared = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	again = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	private = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(shared != MAP_FAILED && again != MAP_FAILED && private != MAP_FAILED);
	close(fd);
	unlink(path);
	check_fill(shared, LENGTH, 100);
	check_fill(private, 4096, 101);
	check_ready();
	check_wait();
	CHECK(check_filled(shared, LENGTH, 100) && check_filled(again, LENGTH, 100));
	CHECK(check_filled(private, 4096, 101));
	CHECK(!memcmp(private + 4096, shared + 4096, LENGTH - 4096));
	check_fill(shared, LENGTH, 102);
	CHECK(check_filled(again, LENGTH, 102));
	CHECK(access(path, F_OK) < 0);
	return check_end();
}
