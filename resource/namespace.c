// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces: a restart takes place in those of cr_restart, so a program with others
 * (a container) is refused.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proc/proc.h"
#include "report/report.h"

static const char *const kinds[] = { "mnt", "net", "ipc", "uts", "user", "cgroup" };

/* Ours do not change: read once, before anything is stopped. */
static char own_name[sizeof(kinds) / sizeof(*kinds)][64];

static ssize_t own_namespace(size_t i, const char *name)
{
	if (own_name[i][0])
		return 0;
	return proc_link(PROC_SELF, name, own_name[i], sizeof(own_name[i]));
}

static int namespace_check(const struct process_probe *probe)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char name[16], theirs[64];
		ssize_t err;

		snprintf(name, sizeof(name), "ns/%s", kinds[i]);
		err = own_namespace(i, name);
		if (err == -ENOENT)	/* this kernel has no such namespaces */
			continue;
		if (err >= 0)
			err = proc_link(probe->thread, name, theirs, sizeof(theirs));
		if (err < 0)
			return report_errno(err, "process %d: cannot see its %s namespace",
					    probe->pid, kinds[i]);
		if (strcmp(own_name[i], theirs))
			return report_fail(-EOPNOTSUPP, "process %d is in another %s namespace: "
					   "run cr_checkpoint inside of it", probe->pid, kinds[i]);
	}
	return 0;
}

static int namespace_save(const struct process_probe *probe, Kcr__Process *p)
{
	(void)p;
	return namespace_check(probe);
}

const struct attribute attribute_namespace = {
	.name = "namespaces",
	.check = namespace_check,
	.save = namespace_save,
};
