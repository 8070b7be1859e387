// SPDX-License-Identifier: GPL-2.0
/*
 * Files in memory (memfd): descriptors and mappings, contents, size, seals in effect.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define LENGTH	(8 * 4096)

int main(int argc, char **argv)
{
	static char contents[LENGTH];
	int open_one, sealed, status;
	pid_t child;
	char *map;

	check_begin(argc, argv);
	open_one = memfd_create("open", 0);
	sealed = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	NEED(open_one >= 0 && sealed >= 0);
	NEED(!ftruncate(open_one, LENGTH));
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, open_one, 0);
	NEED(map != MAP_FAILED);
	check_fill(map, LENGTH, 40);
	NEED(lseek(open_one, 123, SEEK_SET) == 123);
	check_fill(contents, LENGTH, 41);
	NEED(write(sealed, contents, LENGTH) == LENGTH);
	NEED(!fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	check_ready();
	check_wait();
	CHECK(check_filled(map, LENGTH, 40));
	CHECK(lseek(open_one, 0, SEEK_CUR) == 123);
	CHECK(pread(open_one, contents, LENGTH, 0) == LENGTH && check_filled(contents, LENGTH, 40));
	child = fork();
	if (!child) {
		check_fill(map, LENGTH, 42);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && check_filled(map, LENGTH, 42));
	CHECK(fcntl(sealed, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	CHECK(fcntl(sealed, F_GETFD) == FD_CLOEXEC && fcntl(open_one, F_GETFD) == 0);
	CHECK(pread(sealed, contents, LENGTH, 0) == LENGTH && check_filled(contents, LENGTH, 41));
	CHECK(lseek(sealed, 0, SEEK_CUR) == LENGTH);
	CHECK(pwrite(sealed, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(sealed, 1) < 0 && errno == EPERM);
	return check_end();
}
