// SPDX-License-Identifier: GPL-2.0
/*
 * Deleted files, open for reading and writing: contents with a hole, offset, and two
 * descriptors of one file that were opened separately.
 */
#include "check.h"

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-deleted.XXXXXX", buffer[8192];
	struct stat st, other;
	int fd, second;

	check_begin(argc, argv);
	fd = mkstemp(path);
	second = open(path, O_RDONLY);
	NEED(fd >= 0 && second >= 0 && !unlink(path));
	check_fill(buffer, sizeof(buffer), 5);
	NEED(write(fd, buffer, sizeof(buffer)) == sizeof(buffer));
	NEED(pwrite(fd, "end", 3, 1 << 20) == 3 && lseek(fd, 1000, SEEK_SET) == 1000);
	check_ready();
	check_wait();
	memset(buffer, 0, sizeof(buffer));
	CHECK(lseek(fd, 0, SEEK_CUR) == 1000 && lseek(second, 0, SEEK_CUR) == 0);
	CHECK(read(second, buffer, sizeof(buffer)) == sizeof(buffer));
	CHECK(check_filled(buffer, sizeof(buffer), 5));
	CHECK(!fstat(fd, &st) && st.st_size == (1 << 20) + 3 && st.st_nlink == 0);
	CHECK(!fstat(second, &other) && st.st_ino == other.st_ino && st.st_dev == other.st_dev);
	CHECK(pread(fd, buffer, 10, 500000) == 10 && !buffer[0]);
	CHECK(pwrite(fd, "new", 3, 7) == 3 && pread(second, buffer, 3, 7) == 3 &&
	      !memcmp(buffer, "new", 3));
	CHECK(access(path, F_OK) < 0);
	return check_end();
}
