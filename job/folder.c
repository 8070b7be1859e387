// SPDX-License-Identifier: GPL-2.0
/* Paths and folders.  See folder.h. */
#include "job/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/format.h"

char *folder_path(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	return text;
}

char *folder_absolute(const char *path)
{
	size_t length = strlen(path);
	char cwd[PATH_MAX] = "";

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return NULL;
	return folder_path("%s%s%.*s", cwd, *path == '/' ? "" : "/", (int)length, path);
}

static bool is_own(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid();
}

bool folder_is_own(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && is_own(&st);
}

void folder_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;
	DIR *stream;

	stream = fd >= 0 && !fstat(fd, &st) && is_own(&st) ? fdopendir(fd) : NULL;
	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(stream)))
		unlinkat(dirfd(stream), entry->d_name, 0);
	closedir(stream);
	rmdir(path);
}

int folder_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 || fsync(fd) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	/* Not every file system can sync a folder. */
	return err == -EINVAL || err == -EROFS ? 0 : err;
}

/* The folder that an absolute path is in; malloc()ed. */
static char *parent_of(const char *path)
{
	char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;

	if (slash)
		slash[slash == parent] = '\0';
	return parent;
}

int folder_sync_parent(const char *path)
{
	char *parent = parent_of(path);
	int err = parent ? folder_sync(parent) : -ENOMEM;

	free(parent);
	return err;
}

void folder_look_again(const char *path)
{
	char *parent = parent_of(path);
	int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		close(fd);
	free(parent);
}
