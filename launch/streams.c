// SPDX-License-Identifier: GPL-2.0
/* Standard input, output and error of a rank.  See streams.h. */
#include "launch/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* It does not end with the launcher. */
static bool is_lasting(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(fd));
}

static int open_pipe(struct streams *s, int n)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	s->rank[n] = ends[n == STDIN_FILENO ? 0 : 1];
	s->other[n] = ends[n == STDIN_FILENO ? 1 : 0];
	return 0;
}

/* With the modes and the size of the launcher's. */
static int open_terminal(struct streams *s, int n, int given)
{
	struct termios modes;
	struct winsize size;
	bool known = !tcgetattr(given, &modes), sized = !ioctl(given, TIOCGWINSZ, &size);

	if (openpty(&s->other[n], &s->rank[n], NULL, known ? &modes : NULL, sized ? &size : NULL))
		return -errno;
	fcntl(s->other[n], F_SETFD, FD_CLOEXEC);
	fcntl(s->rank[n], F_SETFD, FD_CLOEXEC);
	return 0;
}

static int open_one(struct streams *s, int n, int given)
{
	if (n != STDIN_FILENO && isatty(given))
		return open_terminal(s, n, given);
	if (!is_lasting(given))
		return open_pipe(s, n);
	s->rank[n] = fcntl(given, F_DUPFD_CLOEXEC, STREAMS);
	return s->rank[n] < 0 ? -errno : 0;
}

int streams_open(struct streams *s, const int given[STREAMS])
{
	int err = 0;

	for (int n = 0; n < STREAMS; n++)
		s->rank[n] = s->other[n] = -1;
	for (int n = 0; n < STREAMS && !err; n++)
		err = open_one(s, n, given[n]);
	if (err) {
		streams_close(s->rank);
		streams_close(s->other);
	}
	return err;
}

void streams_hold_own(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < STREAMS);
	if (fd >= 0)
		close(fd);
}

void streams_close(int fds[STREAMS])
{
	for (int n = 0; n < STREAMS; n++) {
		if (fds[n] >= 0)
			close(fds[n]);
		fds[n] = -1;
	}
}
