// SPDX-License-Identifier: GPL-2.0
/*
 * See join.h.  The image, the older files of a chain and the device are open by then; all else
 * is found inside.  The child is in the caller's cgroup, and in none of the caller's
 * sessions and process groups, which have no IDs in the container.
 */
#include "util/join.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/container.h"
#include "report/report.h"
#include "util/follow.h"
#include "util/spare_pid.h"

static int enter(pid_t pid)
{
	struct container c;
	int err = container_find(pid, &c);

	if (err == -ESRCH)
		return report_fail(err, "no process %d, whose container is to be entered", pid);
	if (err)
		return report_errno(err, "cannot see the namespaces of process %d", pid);
	err = !c.namespaces ? report_fail(-EINVAL, "process %d is in no container: its namespaces are "
					  "those of cr_restart", pid) : device_pin();
	if (!err) {
		err = container_enter(&c);
		if (err == -EPERM)
			report_fail(err, "process %d is in a container that you may not enter: restart as "
				    "user %u, or as root if it has no user namespace of its own", pid,
				    c.uid);
		else if (err)
			report_errno(err, "cannot enter the container of process %d", pid);
	}
	container_forget(&c);
	return err;
}

int join_container(void *arg)
{
	const struct join *join = arg;
	int err = enter(join->pid), status;
	pid_t child;

	if (err)
		return err;
	fflush(NULL);
	child = spare_pid_fork(join->context);
	if (child < 0)
		return report_errno(child, "cannot enter the container of process %d", join->pid);
	if (!child) {
		setsid();
		return 0;
	}
	follow_commit();
	status = follow_leader(child);
	if (status < 0)
		return report_errno(status, "cannot wait for cr_restart in the container");
	follow_mimic(status);
}
