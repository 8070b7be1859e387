// SPDX-License-Identifier: GPL-2.0
/* See restart_hold.h. */
#include "util/restart_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/report.h"

static int hold_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects what follows */
static bool runs, loaded;

int restart_hold_open(const char *number)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(number, &end, 10);
	if (errno || end == number || *end || fd <= 2 || fd > 1 << 20 || fcntl(fd, F_GETFD) < 0)
		return report_fail(-EINVAL, "--hold-fd needs an open file descriptor above 2, not \"%s\"",
				   number);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	hold_fd = (int)fd;
	return 0;
}

bool restart_hold_is_open(void)
{
	return hold_fd >= 0;
}

/* A string, which comes with its NUL; NULL: the other end is closed.  Valid until the next call. */
static const char *hear(void)
{
	static char text[PATH_MAX + 1];
	size_t used = 0;
	ssize_t n;

	do {
		n = read(hold_fd, &text[used], 1);
		if (n == 1 && !text[used])
			return text;
		used += n == 1 && used < sizeof(text) - 1;
	} while (n == 1 || (n < 0 && errno == EINTR));
	return NULL;
}

const char *restart_hold_file(void)
{
	return hear();
}

int restart_hold_wait(void)
{
	if (hold_fd < 0)
		return 0;
	dprintf(hold_fd, "held\n");
	return hear() ? 0 : report_fail(-ECANCELED, "the one who holds the restart has not let it go on");
}

/* If nobody listens any more, the programs run all the same. */
static void say(const char *line)
{
	if (send(hold_fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		return;
}

/* Now it runs, or all its memory is there; the last line is said when both is true. */
static void note(bool *what)
{
	pthread_mutex_lock(&lock);
	if (hold_fd >= 0 && !*what) {
		*what = true;
		if (what == &runs)
			say("running\n");
		if (runs && loaded) {
			say("loaded\n");
			close(hold_fd);
			hold_fd = -1;
		}
	}
	pthread_mutex_unlock(&lock);
}

void restart_hold_running(void)
{
	note(&runs);
}

void restart_hold_loaded(void)
{
	note(&loaded);
}

void restart_hold_failed(int err)
{
	if (hold_fd < 0)
		return;
	dprintf(hold_fd, "failed %d %s\n", report_exit_code(err),
		report_message() ? report_message() : strerror(-err));
	close(hold_fd);
	hold_fd = -1;
}
