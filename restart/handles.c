// SPDX-License-Identifier: GPL-2.0
/*
 * A descriptor for each new process.  A half-restored process may be killed, and if its
 * parent ignores SIGCHLD its number is free at once: so the descriptor comes first, and
 * then the module says whether the process of that number is one of the restart.
 */
#include "restart/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/handle.h"
#include "report/report.h"

/* Silently; -ESRCH: it was killed. */
static int open_one(const struct rebuild *r, pid_t pid)
{
	int fd = handle_open(pid), err;

	if (fd < 0)
		return fd;
	do
		err = device_wait(r->job, pid, 1);
	while (err == -EINTR);
	if (!err)
		return fd;
	close(fd);
	return -ESRCH;
}

int handles_open(const struct rebuild *r, int **out)
{
	const struct context *c = r->context;
	int *fd = malloc((c->nr_processes + 1) * sizeof(*fd));

	if (!fd)
		return report_errno(-ENOMEM, "restart");
	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Process *p = c->process[i];

		fd[i] = p->state == KCR__PROCESS__STATE__ZOMBIE ? -1 : open_one(r, r->new_pid[i]);
		if (fd[i] >= -1 || fd[i] == -ESRCH)
			continue;
		report_errno(fd[i], "process %d: cannot open a descriptor for its signals", p->pid);
		handles_close(fd, i);
		return report_error();
	}
	*out = fd;
	return 0;
}
