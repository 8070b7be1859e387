// SPDX-License-Identifier: GPL-2.0
/* Status lines for libcr, a word with the daemon of an MPI job; see status.h. */
#include "util/status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "report/report.h"

static int status_fd = -1, hold_fd = -1, hold_end_fd = -1;

/* The open file descriptor that an option names: it, or -EINVAL with a message. */
static int descriptor(const char *option, const char *number)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(number, &end, 10);
	if (errno || end == number || *end || fd < 0 || fd > 1 << 20 || fcntl(fd, F_GETFD) < 0)
		return report_fail(-EINVAL, "%s needs an open file descriptor, not \"%s\"", option,
				   number);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* ---- for libcr ------------------------------------------------------------------- */

int status_open(const char *number)
{
	int fd = descriptor("--status-fd", number);

	if (fd < 0)
		return fd;
	status_fd = fd;
	return 0;
}

static int hold_until_told(int fd);

int status_begun(void)
{
	if (status_fd >= 0)
		dprintf(status_fd, "\001begun\n");
	if (hold_fd < 0)
		return 0;
	puts("{\"event\":\"ready\"}");
	return hold_until_told(hold_fd);
}

void status_done(int error, pid_t pid)
{
	char text[48];
	int length = snprintf(text, sizeof(text), "\001done %d %d\n", error, pid);

	if (status_fd >= 0 && write(status_fd, text, length) < 0)
		status_fd = -1;		/* nobody reads it */
}

void status_close(void)
{
	if (status_fd >= 0)
		close(status_fd);
	status_fd = -1;
}

int status_is_open(void)
{
	return status_fd >= 0;
}

/* ---- for the daemon of an MPI job ------------------------------------------------ */

static int open_hold(const char *option, const char *number, int *out)
{
	int fd = descriptor(option, number);

	if (fd < 0)
		return fd;
	/* It ends its own ranks and files; what it has started must not go on without it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM))
		return report_errno(-errno, "PR_SET_PDEATHSIG");
	*out = fd;
	return 0;
}

int hold_open(const char *number)
{
	return open_hold("--hold-fd", number, &hold_fd);
}

int hold_end_open(const char *number)
{
	return open_hold("--hold-end-fd", number, &hold_end_fd);
}

static int hold_until_told(int fd)
{
	ssize_t n;
	char byte;

	fflush(stdout);
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : report_fail(-ECANCELED, "the daemon of the MPI job has ended");
}

int status_released(bool copied)
{
	if (hold_fd < 0)
		return 0;
	printf("{\"event\":\"released\",\"copied\":%s}\n", copied ? "true" : "false");
	return hold_until_told(hold_fd);
}

int hold_end_wait(void)
{
	return hold_until_told(hold_end_fd);
}
