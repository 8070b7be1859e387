// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX, OFD and flock locks: other processes still meet them, the owners do not.
 */
#include <sys/file.h>
#include <sys/wait.h>

#include "check.h"

static struct flock range(int type, off_t start, off_t length)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start,
			       .l_len = length };
}

/* In another process: may the lock be had? */
static bool other_may(const char *path, int command, int type, off_t start, off_t length)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct flock lock = range(type, start, length);
		int fd = open(path, O_RDWR);

		if (command == LOCK_EX)
			_exit(flock(fd, LOCK_EX | LOCK_NB) ? 1 : 0);
		_exit(fcntl(fd, command, &lock) ? 1 : 0);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
	char posix[] = "/tmp/kcr-posix.XXXXXX", ofd[] = "/tmp/kcr-ofd.XXXXXX",
	     whole[] = "/tmp/kcr-flock.XXXXXX";
	struct flock write_lock = range(F_WRLCK, 10, 20), read_lock = range(F_RDLCK, 100, 0);
	int p, o, f;

	check_begin(argc, argv);
	p = mkstemp(posix);
	o = mkstemp(ofd);
	f = mkstemp(whole);
	NEED(p >= 0 && o >= 0 && f >= 0);
	NEED(!fcntl(p, F_SETLK, &write_lock) && !fcntl(p, F_SETLK, &read_lock));
	NEED(!fcntl(o, F_OFD_SETLK, &write_lock) && !fcntl(o, F_OFD_SETLK, &read_lock));
	NEED(!flock(f, LOCK_EX));
	check_ready();
	check_wait();
	CHECK(!other_may(posix, F_SETLK, F_RDLCK, 15, 1) && other_may(posix, F_SETLK, F_WRLCK, 30, 5));
	CHECK(!other_may(posix, F_SETLK, F_WRLCK, 5000, 1) && other_may(posix, F_SETLK, F_RDLCK, 5000, 1));
	CHECK(!other_may(ofd, F_OFD_SETLK, F_RDLCK, 29, 1) && other_may(ofd, F_OFD_SETLK, F_WRLCK, 0, 10));
	CHECK(!other_may(ofd, F_OFD_SETLK, F_WRLCK, 100, 1));
	CHECK(!other_may(whole, LOCK_EX, 0, 0, 0));
	write_lock.l_type = F_UNLCK;
	CHECK(!fcntl(p, F_SETLK, &write_lock) && !fcntl(o, F_OFD_SETLK, &write_lock));
	CHECK(!flock(f, LOCK_UN));
	CHECK(other_may(posix, F_SETLK, F_WRLCK, 10, 20));
	CHECK(other_may(ofd, F_OFD_SETLK, F_WRLCK, 10, 20));
	CHECK(other_may(whole, LOCK_EX, 0, 0, 0));
	unlink(posix);
	unlink(ofd);
	unlink(whole);
	return check_end();
}
