// SPDX-License-Identifier: GPL-2.0
/*
 * Files and directories of /proc/PID, where PID is a process of the image: when
 * files are opened, it may not be there yet, or have another number.  They are
 * those of the process that opens until each is installed.
 */
#include "resource/file.h"

#include <fcntl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM	4400

/* What follows /proc/PID in such a path, or NULL. */
static const char *rest_of(const struct rebuild *r, const char *path, pid_t *pid)
{
	char *end;

	if (strncmp(path, "/proc/", 6))
		return NULL;
	*pid = strtol(path + 6, &end, 10);
	return end != path + 6 && (!*end || *end == '/') && context_process(r->context, *pid) ?
	       end : NULL;
}

int own_proc_open(const struct rebuild *r, const char *path, int flags)
{
	char self[PATH_ROOM];
	const char *rest;
	pid_t pid;

	rest = rest_of(r, path, &pid);
	if (!rest)
		return rebuild_open_path(r, path, flags, 0);
	snprintf(self, sizeof(self), "/proc/self%s", rest);
	return rebuild_open_path(r, self, flags & ~O_NOFOLLOW, 0);
}

int own_proc_install(struct rebuild *r, const Kcr__File *file, const char *saved, int number)
{
	int fd, flags = fcntl(number, F_GETFD);
	char path[PATH_ROOM];
	const char *rest;
	pid_t pid;

	rest = rest_of(r, saved, &pid);
	if (!rest)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d%s", rebuild_wait_pid(r, pid), rest);
	fd = open(path, rebuild_open_flags(file));
	if (fd < 0)
		return rebuild_error(file, -errno, "it cannot be opened");
	if (file->has_position)
		lseek(fd, file->position, SEEK_SET);
	dup3(fd, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	close(fd);
	return 0;
}
