// SPDX-License-Identifier: GPL-2.0
/* Paths and folders.  See folder.h. */
#include "mpi-plugin/job/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *folder_path(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
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

void folder_remove(const char *path)
{
	DIR *stream = opendir(path);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
	rmdir(path);
}

int folder_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 || fsync(fd) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	/* Not every file system can. */
	return err == -EINVAL || err == -EROFS ? 0 : err;
}

int folder_sync_parent(const char *path)
{
	char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	int err = slash ? 0 : -ENOMEM;

	if (slash) {
		slash[slash == parent] = '\0';
		err = folder_sync(parent);
	}
	free(parent);
	return err;
}
