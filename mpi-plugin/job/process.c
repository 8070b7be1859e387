// SPDX-License-Identifier: GPL-2.0
/* Reading /proc.  See process.h. */
#include "mpi-plugin/job/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_AT_ONCE	16384

char *process_text(pid_t pid, const char *name, size_t *length)
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

char **process_environment(pid_t pid)
{
	size_t length, count = 0;
	char *text = process_text(pid, "environ", &length), **vector, *copy;

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

struct tree {
	pid_t *pid;
	size_t count, room;
};

static int add(struct tree *t, pid_t pid)
{
	if (t->count == t->room) {
		size_t room = 2 * t->room + 16;
		pid_t *grown = realloc(t->pid, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->pid = grown;
		t->room = room;
	}
	t->pid[t->count++] = pid;
	return 0;
}

static int add_children(struct tree *t, pid_t pid, const char *tid)
{
	char name[300], *text, *end;
	size_t length;
	int err = 0;

	snprintf(name, sizeof(name), "task/%s/children", tid);
	text = process_text(pid, name, &length);
	for (char *at = text; at && !err; at = end) {
		pid_t child = strtol(at, &end, 10);

		if (end == at)
			break;
		err = add(t, child);
	}
	free(text);
	return err;
}

ssize_t process_tree(pid_t top, pid_t **out)
{
	struct tree t = { };
	int err = add(&t, top);

	for (size_t i = 0; !err && i < t.count; i++) {
		struct dirent *entry;
		char path[64];
		DIR *dir;

		snprintf(path, sizeof(path), "/proc/%d/task", t.pid[i]);
		dir = opendir(path);
		while (dir && !err && (entry = readdir(dir)))
			if (*entry->d_name != '.')
				err = add_children(&t, t.pid[i], entry->d_name);
		if (dir)
			closedir(dir);
	}
	if (err) {
		free(t.pid);
		return err;
	}
	*out = t.pid;
	return t.count;
}
