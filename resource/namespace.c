// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces and the root folder: a restart takes place in those of
 * cr_restart, so a program with others (a container, a chroot) is refused.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report.h"

static const char *const kinds[] = { "mnt", "net", "ipc", "uts", "user" };

static int check_root(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (stat(path, &theirs) < 0)
		return report_errno(-errno, "process %d: cannot see its root folder", pid);
	if (stat("/", &ours) < 0)
		return report_errno(-errno, "cannot see the root folder");
	if (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)
		return report_fail(-EOPNOTSUPP, "process %d: its root folder is not ours (chroot): "
				   "such a program cannot be checkpointed", pid);
	return 0;
}

static int namespace_save(const struct process_probe *probe, Kcr__Process *p)
{
	(void)p;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char name[16], theirs[64], ours[64];
		ssize_t err;

		snprintf(name, sizeof(name), "ns/%s", kinds[i]);
		err = proc_link(0, name, ours, sizeof(ours));
		if (err == -ENOENT)	/* this kernel has no such namespaces */
			continue;
		if (err >= 0)
			err = proc_link(probe->pid, name, theirs, sizeof(theirs));
		if (err < 0)
			return report_errno(err, "process %d: cannot see its %s namespace",
					    probe->pid, kinds[i]);
		if (strcmp(ours, theirs))
			return report_fail(-EOPNOTSUPP, "process %d is in another %s namespace: "
					   "run cr_checkpoint inside of it", probe->pid, kinds[i]);
	}
	return check_root(probe->pid);
}

const struct attribute attribute_namespace = {
	.name = "namespaces",
	.save = namespace_save,
};
