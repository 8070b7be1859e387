// SPDX-License-Identifier: GPL-2.0
/*
 * Makes folders for a moment, to be removed again.  Nothing can be created in a folder
 * that is removed, so a new one is as good as the old.  See removed_folder.h.
 */
#include "resource/removed_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "resource/file.h"
#include "resource/identity.h"

void removed_folder_forget(const char *path, size_t first)
{
	char folder[PATH_MAX] = "";

	for (size_t end = strlen(path); first && end-- > first - 1;) {
		if (path[end] != '/')
			continue;
		memcpy(folder, path, end);
		folder[end] = '\0';
		if (rmdir(folder))
			return;
	}
}

size_t removed_folder_make(const char *path)
{
	char folder[PATH_MAX] = "";
	size_t first = 0;

	if (strlen(path) >= sizeof(folder))
		return 0;
	for (size_t end = 1; path[end]; end++) {
		if (path[end] != '/')
			continue;
		memcpy(folder, path, end);
		folder[end] = '\0';
		if (!mkdir(folder, 0700) && !first)
			first = end;
	}
	return first;
}

/* Only a folder that nobody can have put in its place has no name any more. */
static int check_removed(int fd)
{
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && !st.st_nlink))
		return fd;
	close(fd);
	return -EEXIST;
}

static int open_at(const char *path)
{
	char folder[PATH_MAX];
	size_t first;
	int fd = -EEXIST;

	if (snprintf(folder, sizeof(folder), "%s/", path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	first = removed_folder_make(folder);
	if (first)
		fd = identity_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	removed_folder_forget(folder, first);
	return check_removed(fd);
}

static int open_anywhere(void)
{
	char path[] = P_tmpdir "/kcr-removed.XXXXXX";
	int fd;

	if (!mkdtemp(path))
		return -errno;
	fd = identity_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	rmdir(path);
	return check_removed(fd);
}

int removed_folder_open(const struct rebuild *r, const char *path)
{
	const char *moved = rebuild_path(r, path);
	int fd = moved ? open_at(moved) : -ENOMEM;

	rebuild_path_free(moved, path);
	return fd < 0 ? open_anywhere() : fd;
}
