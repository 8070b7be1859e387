// SPDX-License-Identifier: GPL-2.0
/* See restart_hold.h. */
#include "util/restart_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

static int hold_fd = -1;

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

int restart_hold_wait(void)
{
	char byte;
	ssize_t n;

	if (hold_fd < 0)
		return 0;
	dprintf(hold_fd, "held\n");
	do
		n = read(hold_fd, &byte, 1);
	while ((n < 0 && errno == EINTR) || (n == 1 && byte != '\n'));
	return n == 1 ? 0 : report_fail(-ECANCELED, "the one who holds the restart has not let it go on");
}

void restart_hold_running(void)
{
	if (hold_fd < 0)
		return;
	dprintf(hold_fd, "running\n");
	close(hold_fd);
	hold_fd = -1;
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
