// SPDX-License-Identifier: GPL-2.0
/*
 * Starting a program, see spawn.h: the child's end of a pipe is closed by a successful
 * execve(2), and else carries its errno.
 */
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/proc.h"

static void become(char *const *argv, void (*prepare)(void), int to_parent)
{
	int err;

	if (prepare)
		prepare();
	execvp(argv[0], argv);
	err = errno;
	if (write(to_parent, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

pid_t spawn_program(char *const *argv, void (*prepare)(void))
{
	int ends[2], err = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child)
		become(argv, prepare, ends[1]);
	if (child < 0)
		err = errno;
	close(ends[1]);
	if (child > 0 && read(ends[0], &err, sizeof(err)) == sizeof(err))
		waitpid(child, NULL, 0);
	close(ends[0]);
	return err ? -err : child;
}

char *spawn_beside(const char *name)
{
	char path[PATH_MAX], *text;
	ssize_t length = proc_link(PROC_SELF, "exe", path, sizeof(path));
	char *slash = length > 0 ? strrchr(path, '/') : NULL;

	if (!slash || asprintf(&text, "%.*s/%s", (int)(slash - path), path, name) < 0)
		return NULL;
	return text;
}
