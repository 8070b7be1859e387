// SPDX-License-Identifier: GPL-2.0
/*
 * Regular files: offset, flags, append mode, close-on-exec, numbers with gaps, a
 * duplicate that shares its offset and one opened twice that does not.
 */
#include "check.h"

int main(int argc, char **argv)
{
	char path[] = "/tmp/kcr-regular.XXXXXX", text[16] = "";
	int plain, append, twin, again, far, readonly;

	check_begin(argc, argv);
	plain = mkstemp(path);
	NEED(plain >= 0 && write(plain, "0123456789", 10) == 10 && lseek(plain, 4, SEEK_SET) == 4);
	append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	twin = dup(plain);
	again = open(path, O_RDWR);
	far = fcntl(plain, F_DUPFD_CLOEXEC, 700);
	readonly = open(path, O_RDONLY | O_NOATIME | O_SYNC);
	NEED(append >= 0 && twin >= 0 && again >= 0 && far >= 700 && readonly >= 0);
	check_ready();
	check_wait();
	CHECK(lseek(plain, 0, SEEK_CUR) == 4 && lseek(again, 0, SEEK_CUR) == 0);
	CHECK(read(twin, text, 2) == 2 && !memcmp(text, "45", 2));
	CHECK(lseek(plain, 0, SEEK_CUR) == 6 && lseek(far, 0, SEEK_CUR) == 6);
	CHECK(write(append, "ab", 2) == 2 && lseek(append, 0, SEEK_CUR) == 12);
	CHECK(fcntl(append, F_GETFD) == FD_CLOEXEC && fcntl(plain, F_GETFD) == 0);
	CHECK(fcntl(far, F_GETFD) == FD_CLOEXEC);
	CHECK((fcntl(append, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND));
	CHECK((fcntl(readonly, F_GETFL) & (O_ACCMODE | O_NOATIME | O_SYNC)) ==
	      (O_RDONLY | O_NOATIME | O_SYNC));
	CHECK(pread(readonly, text, 12, 0) == 12 && !memcmp(text, "0123456789ab", 12));
	CHECK(write(readonly, "x", 1) < 0 && errno == EBADF);
	CHECK(dup(0) == readonly + 1);
	unlink(path);
	return check_end();
}
