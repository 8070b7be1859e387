// SPDX-License-Identifier: GPL-2.0
/*
 * Enters all namespaces of a process in one call, by its pidfd (setns(2), since Linux 5.8),
 * so that they are those of one process and it does not matter whether its PID is another
 * one's by now.
 */
#include "proc/container.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "proc/handle.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "proc/tree.h"

static const struct {
	const char *name;
	int flag;
} kinds[] = {
	{ "ns/user", CLONE_NEWUSER }, { "ns/mnt", CLONE_NEWNS }, { "ns/pid", CLONE_NEWPID },
	{ "ns/net", CLONE_NEWNET }, { "ns/ipc", CLONE_NEWIPC }, { "ns/uts", CLONE_NEWUTS },
	{ "ns/cgroup", CLONE_NEWCGROUP },
};

static int compare(pid_t pid, int *differ)
{
	*differ = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char ours[64], theirs[64];
		ssize_t err;

		if (proc_link(PROC_SELF, kinds[i].name, ours, sizeof(ours)) < 0)
			continue;		/* this kernel has no such namespaces */
		err = proc_link(pid, kinds[i].name, theirs, sizeof(theirs));
		if (err < 0)
			return err == -ENOENT ? -ESRCH : (int)err;
		if (strcmp(ours, theirs))
			*differ |= kinds[i].flag;
	}
	return 0;
}

/* The last number of a line that has one for each PID namespace, ours first. */
static pid_t last_number(const char *status, const char *key, pid_t otherwise)
{
	const char *value = status_value(status, key);
	long inner = otherwise;

	while (value && *value >= '0' && *value <= '9') {
		char *end;

		inner = strtol(value, &end, 10);
		value = end + strspn(end, " \t");
	}
	return inner;
}

pid_t container_inner_pid(pid_t pid)
{
	char *status = proc_text(pid, "status", NULL);
	pid_t inner = status ? last_number(status, "NStgid", pid) : pid;

	free(status);
	return inner;
}

/* The first process below `top` whose line has that number at its end; -ESRCH: none. */
static pid_t find_below(pid_t top, const char *key, pid_t inner)
{
	pid_t *all, found = -ESRCH;
	ssize_t count = proc_tree(top, &all);

	if (count < 0)
		return count;
	for (ssize_t i = 0; i < count && found < 0; i++) {
		char *status = proc_text(all[i], "status", NULL);

		if (status && last_number(status, key, -1) == inner)
			found = all[i];
		free(status);
	}
	free(all);
	return found;
}

pid_t container_outer_pid(pid_t top, pid_t inner)
{
	return find_below(top, "NStgid", inner);
}

pid_t container_outer_group(pid_t top, pid_t inner)
{
	pid_t member = find_below(top, "NSpgid", inner), group;

	if (member < 0)
		return member;
	group = getpgid(member);
	return group < 0 ? -errno : group;
}

static int read_status(pid_t pid, struct container *c)
{
	char *status = proc_text(pid, "status", NULL);

	if (!status)
		return errno == ENOENT ? -ESRCH : -errno;
	c->inner = last_number(status, "NStgid", pid);
	c->uid = status_number(status, "Uid", 10, (uid_t)-1);
	free(status);
	return 0;
}

int container_find(pid_t pid, struct container *c)
{
	int err;

	c->process = handle_open(pid);
	if (c->process < 0)
		return c->process;
	err = compare(pid, &c->namespaces);
	if (!err)
		err = read_status(pid, c);
	/* What was read is of the process that the descriptor stands for only if that lives. */
	if (!err && container_has_ended(c, 0))
		err = -ESRCH;
	if (err)
		container_forget(c);
	return err;
}

void container_forget(struct container *c)
{
	if (c->process >= 0)
		close(c->process);
	c->process = -1;
}

int container_enter(const struct container *c)
{
	if (c->namespaces & CLONE_NEWUSER && c->uid != geteuid())
		return -EPERM;
	/* Without this, root of the container could use our descriptors by /proc/PID/fd. */
	if (prctl(PR_SET_DUMPABLE, 0) || setns(c->process, c->namespaces))
		return -errno;
	return 0;
}

const char *container_names(int namespaces, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && used < size; i++)
		if (namespaces & kinds[i].flag)
			used += snprintf(text + used, size - used, "%s%s", used ? " " : "",
					 strchr(kinds[i].name, '/') + 1);
	return text;
}

bool container_has_ended(const struct container *c, int timeout_ms)
{
	struct pollfd end = { .fd = c->process, .events = POLLIN };

	return poll(&end, 1, timeout_ms) > 0;
}
