// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces: a restart takes place in those of cr_restart, so a program with others
 * (a container) is refused.
 */
#include "resource/namespace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/container.h"
#include "proc/proc.h"
#include "proc/time_namespace.h"
#include "report/report.h"
#include "resource/attribute.h"

#define CHILDREN	"ns/pid_for_children"

static const char *const kinds[] = { "mnt", "net", "ipc", "uts", "user", "cgroup" };

/* Ours do not change: read once, before anything is stopped. */
static char own_name[sizeof(kinds) / sizeof(*kinds)][64];

static ssize_t own_namespace(size_t i, const char *name)
{
	if (own_name[i][0])
		return 0;
	return proc_link(PROC_SELF, name, own_name[i], sizeof(own_name[i]));
}

int namespace_refuse(pid_t pid, pid_t thread, const char *what)
{
	return report_fail(-EOPNOTSUPP, "process %d %s: run cr_checkpoint inside, as in \"nsenter "
			   "--all --preserve-credentials --target %d cr_checkpoint %d\" "
			   "(cr_checkpoint(1), CONTAINERS)", pid, what, pid, container_inner_pid(thread));
}

/* A thread may have left its process's: unshare(2) and setns(2) are for threads. */
static int refuse_other(const struct process_probe *probe, pid_t tid, const char *kind)
{
	char what[64];

	if (tid == probe->thread)
		snprintf(what, sizeof(what), "is in another %s namespace", kind);
	else
		snprintf(what, sizeof(what), "has thread %d in another %s namespace", tid, kind);
	return namespace_refuse(probe->pid, probe->thread, what);
}

/* /proc has no name of a namespace that has no process yet, nor of that of a thread that has ended. */
static bool leaves_pid_namespace(pid_t tid)
{
	static char ours[64];
	char theirs[64];
	ssize_t err;

	if (!ours[0] && proc_link(PROC_SELF, CHILDREN, ours, sizeof(ours)) < 0)
		return false;
	err = proc_link(tid, CHILDREN, theirs, sizeof(theirs));
	if (err == -ENOENT)
		return proc_link(tid, "ns/mnt", theirs, sizeof(theirs)) >= 0;
	return err >= 0 && strcmp(ours, theirs);
}

int namespace_check_children(pid_t pid, pid_t tid, bool is_thread)
{
	const char *kind = leaves_pid_namespace(tid) ? "pid" :
			   time_namespace_is_left(tid) ? "time" : NULL;
	char thread[32] = "";

	if (!kind)
		return 0;
	if (is_thread)
		snprintf(thread, sizeof(thread), ": thread %d", tid);
	return report_fail(-EOPNOTSUPP, "process %d%s makes its children in another %s namespace, which "
			   "cannot be saved: save these without it", pid, thread, kind);
}

static int check_thread(const struct process_probe *probe, pid_t tid)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char name[16], theirs[64];
		ssize_t err;

		snprintf(name, sizeof(name), "ns/%s", kinds[i]);
		err = own_namespace(i, name);
		if (err == -ENOENT)	/* this kernel has no such namespaces */
			continue;
		if (err >= 0)
			err = proc_link(tid, name, theirs, sizeof(theirs));
		if ((err == -ENOENT || err == -ESRCH) && tid != probe->thread)
			return 0;	/* it has ended */
		if (err < 0)
			return report_errno(err, "process %d: cannot see its %s namespace",
					    probe->pid, kinds[i]);
		if (strcmp(own_name[i], theirs))
			return refuse_other(probe, tid, kinds[i]);
	}
	return tid == probe->thread ? 0 : namespace_check_children(probe->pid, tid, true);
}

static int namespace_check(const struct process_probe *probe)
{
	DIR *threads = proc_list(probe->pid, "task");
	int err = check_thread(probe, probe->thread), tid;

	while (!err && (tid = proc_next(threads)) >= 0)
		if (tid != probe->thread)
			err = check_thread(probe, tid);
	if (threads)
		closedir(threads);
	return err;
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
