// SPDX-License-Identifier: GPL-2.0
/*
 * The processes around a rank, read from /proc: a rank need not be the process
 * that the daemon started (`mpirun sh -c ./app`).  A restored rank descends from
 * a cr_restart, whose environment is that of the new job; its own environment,
 * and that of its saved ancestors, is still the old one.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/relaunch.h"
#include "proc/proc.h"
#include "proc/status.h"

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
	for (pid = stat_parent(child); pid > 0; child = pid, pid = stat_parent(pid)) {
		l->environment = proc_environment(pid);
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
