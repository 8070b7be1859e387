// SPDX-License-Identifier: GPL-2.0
/*
 * The processes around a rank, read from /proc: a rank need not be the process
 * that the daemon started (`mpirun sh -c ./app`).  A restored rank descends from
 * a cr_restart, whose environment is that of the new job; its own environment,
 * and that of its saved ancestors, is still the old one.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi-plugin/job/process.h"
#include "mpi-plugin/job/relaunch.h"

static pid_t parent_of(pid_t pid)
{
	size_t length;
	char *stat = process_text(pid, "stat", &length);
	char *end = stat ? strrchr(stat, ')') : NULL;
	pid_t parent = 0;

	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		parent = 0;
	free(stat);
	return parent;
}

const char *launcher_get(const struct launcher *l, const char *name)
{
	size_t length = strlen(name);

	for (char **each = l->environment; each && *each; each++)
		if (!strncmp(*each, name, length) && (*each)[length] == '=')
			return *each + length + 1;
	return NULL;
}

int launcher_find(struct launcher *l, pid_t daemon)
{
	pid_t child = getpid(), pid;

	memset(l, 0, sizeof(*l));
	for (pid = parent_of(child); pid > 0; child = pid, pid = parent_of(pid)) {
		l->environment = process_environment(pid);
		l->restart = launcher_get(l, RELAUNCH_VARIABLE) != NULL;
		l->top = child;
		if (l->restart)
			return 0;
		launcher_free(l);
		if (pid == daemon) {
			l->daemon = pid;
			return 0;
		}
	}
	return -ESRCH;
}

void launcher_free(struct launcher *l)
{
	free(l->environment);
	l->environment = NULL;
}
