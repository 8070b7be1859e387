// SPDX-License-Identifier: GPL-2.0
/*
 * As many open files as the third argument says, more than a program may have
 * that was started as usual; each is one of its own, at an offset of its own.
 */
#include <sys/resource.h>

#include "check.h"

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[3]) : 6000;
	struct rlimit limit = { count + 16, count + 16 };
	char path[] = "/tmp/kcr-many.XXXXXX";
	int first;

	check_begin(argc, argv);
	NEED(!setrlimit(RLIMIT_NOFILE, &limit));
	first = mkstemp(path);
	NEED(first >= 0 && !ftruncate(first, count));
	for (int i = 1; i < count; i++) {
		int fd = open(path, O_RDONLY);

		NEED(fd == first + i && lseek(fd, i, SEEK_SET) == i);
	}
	check_ready();
	check_wait();
	for (int i = 1; i < count; i++)
		CHECK(lseek(first + i, 0, SEEK_CUR) == i);
	CHECK(!unlink(path));
	return check_end();
}
