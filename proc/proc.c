// SPDX-License-Identifier: GPL-2.0
/* Files of /proc: paths, and reading with as few calls as possible.  See proc.h. */
#include "proc/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_READ	16384		/* bytes: few files are longer */

const char *proc_path(char path[PROC_PATH], pid_t pid, const char *name)
{
	const char *slash = *name ? "/" : "";

	if (pid == PROC_ROOT)
		snprintf(path, PROC_PATH, "/proc%s%s", slash, name);
	else if (pid == PROC_SELF)
		snprintf(path, PROC_PATH, "/proc/self%s%s", slash, name);
	else
		snprintf(path, PROC_PATH, "/proc/%d%s%s", pid, slash, name);
	return path;
}

int proc_open(pid_t pid, const char *name, int flags)
{
	char path[PROC_PATH];
	int fd = open(proc_path(path, pid, name), flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

FILE *proc_stream(pid_t pid, const char *name)
{
	char path[PROC_PATH];

	return fopen(proc_path(path, pid, name), "re");
}

/*
 * A read of /proc returns up to about a page: less than half of one was the whole file,
 * and the read that would return 0 can be saved.
 */
static bool is_whole(size_t length, size_t size)
{
	return length < 2048 && length < size - 1;
}

/* Reads from *length on until the end or until there are size - 1 bytes; -errno. */
static int read_on(int fd, char *buffer, size_t size, size_t *length)
{
	ssize_t got;

	do {
		got = read(fd, buffer + *length, size - 1 - *length);
		if (got < 0)
			return -errno;
		*length += got;
	} while (got && *length < size - 1 && !is_whole(*length, size));
	buffer[*length] = '\0';
	return 0;
}

ssize_t proc_read(pid_t pid, const char *name, char *buffer, size_t size)
{
	int fd = proc_open(pid, name, O_RDONLY), err;
	size_t length = 0;

	if (fd < 0)
		return fd;
	err = read_on(fd, buffer, size, &length);
	close(fd);
	return err ? err : (ssize_t)length;
}

/* Reads the rest of a file after a full `text`, which it takes over.  As proc_text(). */
static char *read_rest(int fd, char *text, size_t *length)
{
	size_t size = *length + 1;
	int err = 0;

	while (!err && *length == size - 1) {
		char *larger = realloc(text, 4 * size);

		if (larger) {
			text = larger;
			size *= 4;
			err = read_on(fd, text, size, length);
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		return text;
	free(text);
	errno = -err;
	return NULL;
}

char *proc_text(pid_t pid, const char *name, size_t *length)
{
	int fd = proc_open(pid, name, O_RDONLY), err;
	char start[FIRST_READ], *text = NULL;
	size_t got = 0;

	err = fd < 0 ? fd : read_on(fd, start, sizeof(start), &got);
	if (err)
		errno = -err;
	else
		text = malloc(got + 1);
	if (text)
		memcpy(text, start, got + 1);
	if (text && got == sizeof(start) - 1)
		text = read_rest(fd, text, &got);
	if (fd >= 0)
		close(fd);
	if (text && length)
		*length = got;
	return text;
}

/* The links of what ends just now say EACCES (proc_pid_readlink(), fs/proc/base.c). */
static bool no_such_process(pid_t pid)
{
	char path[PROC_PATH];

	return access(proc_path(path, pid, "stat"), F_OK) && (errno == ENOENT || errno == ESRCH);
}

ssize_t proc_link(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[PROC_PATH];
	ssize_t length = readlink(proc_path(path, pid, name), buffer, size - 1);

	if (length < 0)
		return errno == EACCES && no_such_process(pid) ? -ESRCH : -errno;
	buffer[length] = '\0';
	return length;
}

const char *proc_program(pid_t pid, char *path, size_t size)
{
	static const char deleted[] = " (deleted)";
	ssize_t length = proc_link(pid, "exe", path, size);
	const ssize_t suffix = sizeof(deleted) - 1;
	char *slash;

	if (length < 0)
		return NULL;
	if (length > suffix && !strcmp(path + length - suffix, deleted))
		path[length - suffix] = '\0';
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char **proc_environment(pid_t pid)
{
	size_t length, count = 0;
	char *text = proc_text(pid, "environ", &length), **vector, *copy;

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

DIR *proc_list(pid_t pid, const char *name)
{
	char path[PROC_PATH];

	return opendir(proc_path(path, pid, name));
}

int proc_next(DIR *list)
{
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (isdigit(entry->d_name[0]))
			return atoi(entry->d_name);
	return -1;
}

const char *proc_fd_path(char path[PROC_PATH], int fd)
{
	snprintf(path, PROC_PATH, "/proc/self/fd/%d", fd);
	return path;
}

ssize_t proc_fd_link(int fd, char *buffer, size_t size)
{
	char name[24];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link(PROC_SELF, name, buffer, size);
}

int proc_fd_reopen(int fd, int flags)
{
	char name[24];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_open(PROC_SELF, name, flags);
}

int proc_open_regular(int folder, const char *path, int flags, struct stat *st)
{
	int node = openat(folder, path, O_PATH | O_CLOEXEC | flags), fd;

	if (node < 0)
		return -errno;
	if (fstat(node, st))
		fd = -errno;
	else
		fd = S_ISREG(st->st_mode) ? proc_fd_reopen(node, O_RDONLY) : -EINVAL;
	close(node);
	return fd;
}
