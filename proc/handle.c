// SPDX-License-Identifier: GPL-2.0
/* Descriptors of processes.  See handle.h. */
#include "proc/handle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS_MAX	(1 << 20)	/* what kernels allow unless told otherwise (fs.nr_open) */

/* False: it was as high as it can be. */
static bool raise_limit(void)
{
	struct rlimit limit, wider = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_MAX)
		return false;
	if (limit.rlim_max < DESCRIPTORS_MAX && !setrlimit(RLIMIT_NOFILE, &wider))
		return true;
	if (limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &limit);
}

int handle_open(pid_t pid)
{
	int fd;

	do
		fd = syscall(SYS_pidfd_open, pid, 0);
	while (fd < 0 && errno == EMFILE && raise_limit());
	return fd < 0 ? -errno : fd;
}

void handle_signal(int fd, int signal)
{
	if (fd >= 0)
		syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

void handles_close(int *fd, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	free(fd);
}
