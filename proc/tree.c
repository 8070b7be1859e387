// SPDX-License-Identifier: GPL-2.0
/* Trees of processes.  See tree.h. */
#include "proc/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proc/proc.h"

/* What fn returned.  *missed: why the children could not be read. */
static int each_of_thread(pid_t pid, pid_t tid, int (*fn)(void *arg, pid_t child), void *arg,
			  int *missed)
{
	char name[32], *text, *end;
	int err = 0;

	snprintf(name, sizeof(name), "task/%d/children", tid);
	text = proc_text(pid, name, NULL);
	if (!text)
		*missed = -errno;
	for (char *at = text; at && !err; at = end) {
		pid_t child = strtol(at, &end, 10);

		if (end == at)
			break;
		err = fn(arg, child);
	}
	free(text);
	return err;
}

int proc_each_child(pid_t pid, int (*fn)(void *arg, pid_t child), void *arg)
{
	DIR *threads = proc_list(pid, "task");
	int err = 0, missed = 0, tid;

	while (!err && (tid = proc_next(threads)) >= 0)
		err = each_of_thread(pid, tid, fn, arg, &missed);
	if (threads)
		closedir(threads);
	return err ? err : missed;
}

static int found(void *arg, pid_t child)
{
	(void)arg;
	return child;
}

bool proc_has_child(pid_t pid)
{
	return proc_each_child(pid, found, NULL) != 0;
}

struct tree {
	pid_t *pid;
	size_t count, room;
};

static int add(void *arg, pid_t pid)
{
	struct tree *t = arg;

	if (t->count == t->room) {
		size_t room = 2 * t->room + 16;
		pid_t *grown = realloc(t->pid, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->pid = grown;
		t->room = room;
	}
	t->pid[t->count++] = pid;
	return 0;
}

ssize_t proc_tree(pid_t top, pid_t **out)
{
	struct tree t = {};
	int err = add(&t, top);

	for (size_t i = 0; err != -ENOMEM && i < t.count; i++)
		err = proc_each_child(t.pid[i], add, &t);
	if (err == -ENOMEM) {
		free(t.pid);
		return err;
	}
	*out = t.pid;
	return t.count;
}
