// SPDX-License-Identifier: GPL-2.0
/*
 * Opening saved paths, which --relocate may move, at a restart.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/identity.h"

const char *rebuild_path(const struct rebuild *r, const char *path)
{
	return r->relocate ? r->relocate(path) : path;
}

void rebuild_path_free(const char *path, const char *original)
{
	if (path != original)
		free((char *)path);
}

int rebuild_open_path(const struct rebuild *r, const char *path, int flags, mode_t mode)
{
	const char *moved = rebuild_path(r, path);
	int fd = moved ? identity_open(moved, flags, mode) : -ENOMEM;

	if (fd == -ELOOP && !(flags & O_NOFOLLOW))
		report_fail(fd, "a symbolic link is in the path %s, and root follows none in a restart: "
			    "use --relocate", moved);
	rebuild_path_free(moved, path);
	return fd;
}

int rebuild_open_node(const struct rebuild *r, const char *path, int flags, struct stat *st,
		      mode_t type)
{
	int node = rebuild_open_path(r, path, O_PATH | (flags & O_NOFOLLOW), 0), fd, err = 0;

	if (node < 0)
		return node;
	if (fstat(node, st))
		err = -errno;
	else if ((st->st_mode & S_IFMT) != type)
		err = report_fail(-ESTALE, "%s is a file of another type than at the checkpoint",
				  path);
	if (err || flags & O_PATH) {
		if (err)
			close(node);
		return err ?: node;
	}
	fd = proc_fd_reopen(node, flags & ~O_NOFOLLOW);
	if (fd == -EPERM && flags & O_NOATIME)
		fd = proc_fd_reopen(node, flags & ~(O_NOFOLLOW | O_NOATIME));
	close(node);
	return fd;
}

int rebuild_open_folder(const struct rebuild *r, const char *path, char name[NAME_MAX + 1])
{
	const char *moved = rebuild_path(r, path), *slash = moved ? strrchr(moved, '/') : NULL;
	char folder[PATH_MAX] = ".";
	int fd = -ENAMETOOLONG;

	if (!moved)
		return -ENOMEM;
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash > moved ? (int)(slash - moved) : 1, moved);
	if (snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : moved) <= NAME_MAX)
		fd = identity_open(folder, O_PATH | O_DIRECTORY, 0);
	rebuild_path_free(moved, path);
	return fd;
}

bool rebuild_is_guarded(const struct rebuild *r, const char *path)
{
	const char *moved = rebuild_path(r, path);
	bool guarded = moved && identity_is_guarded(moved);

	rebuild_path_free(moved, path);
	return guarded;
}
