// SPDX-License-Identifier: GPL-2.0
/* Status lines for libcr; see status.h. */
#include "util/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/report.h"

static int status_fd = -1;

int status_open(const char *number)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(number, &end, 10);
	if (errno || end == number || *end || fd < 0 || fd > 1 << 20 || fcntl(fd, F_GETFD) < 0)
		return report_fail(-EINVAL, "--status-fd needs an open file descriptor, not \"%s\"",
				   number);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	status_fd = fd;
	return 0;
}

void status_begun(void)
{
	if (status_fd >= 0)
		dprintf(status_fd, "\001begun\n");
}

void status_done(int error, pid_t pid)
{
	char text[48];
	int length = snprintf(text, sizeof(text), "\001done %d %d\n", error, pid);

	if (status_fd >= 0 && write(status_fd, text, length) < 0)
		status_fd = -1;		/* nobody reads it */
}

int status_is_open(void)
{
	return status_fd >= 0;
}
