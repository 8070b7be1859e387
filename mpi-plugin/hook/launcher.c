// SPDX-License-Identifier: GPL-2.0
/*
 * The processes around a rank, read from /proc: a rank need not be the process
 * that the daemon started (`mpirun sh -c ./app`).  A restored rank descends from
 * a cr_restart, whose environment is that of the new job; its own environment,
 * and that of its saved ancestors, is still the old one.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi-plugin/job/relaunch.h"

#define READ_AT_ONCE	16384

static char *read_file(pid_t pid, const char *name, size_t *length)
{
	char path[64], *text = NULL;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*length = 0;
	if (fd < 0)
		return NULL;
	do {
		char *grown = realloc(text, *length + READ_AT_ONCE + 1);

		if (!grown)
			break;
		text = grown;
		n = read(fd, text + *length, READ_AT_ONCE);
		*length += n > 0 ? n : 0;
		text[*length] = '\0';
	} while (n > 0);
	close(fd);
	return text;
}

static pid_t parent_of(pid_t pid)
{
	size_t length;
	char *stat = read_file(pid, "stat", &length);
	char *end = stat ? strrchr(stat, ')') : NULL;
	pid_t parent = 0;

	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		parent = 0;
	free(stat);
	return parent;
}

/* Its environment as a vector, in one allocation after the pointers. */
static char **environment_of(pid_t pid)
{
	size_t length, count = 0;
	char *text = read_file(pid, "environ", &length), **vector, *copy;

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i++)
		count += text[i] == '\0';
	vector = malloc((count + 2) * sizeof(*vector) + length + 1);
	if (vector) {
		copy = (char *)(vector + count + 2);
		memcpy(copy, text, length + 1);
		count = 0;
		for (char *at = copy; at < copy + length; at += strlen(at) + 1)
			vector[count++] = at;
		vector[count] = NULL;
	}
	free(text);
	return vector;
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
		l->environment = environment_of(pid);
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
