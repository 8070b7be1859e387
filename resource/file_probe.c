// SPDX-License-Identifier: GPL-2.0
/*
 * What is asked of every open file before anything is known of its kind: by
 * the duplicate, except for what /proc shows of the descriptor itself.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The whole text of a file of /proc; NULL: it could not be read. */
static char *read_text(const char *path)
{
	size_t room = 1024, length = 0;
	char *text = NULL, *more;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	for (;;) {
		more = realloc(text, room);
		if (!more)
			break;
		text = more;
		got = read(fd, text + length, room - 1 - length);
		if (got < 0)
			break;
		length += got;
		/* Less than half a page at a time is all that /proc has. */
		if (!got || (length < 2048 && length < room - 1)) {
			text[length] = '\0';
			close(fd);
			return text;
		}
		if (length == room - 1)
			room *= 4;
	}
	free(text);
	close(fd);
	return NULL;
}

char *file_probe_fdinfo(const struct file_probe *p)
{
	char path[64];
	char *text;

	if (p->number < 0)
		return strdup("");
	/* Theirs tells of close-on-exec and POSIX locks; ours is there if they closed it. */
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", p->thread, p->number);
	text = read_text(path);
	if (!text) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", p->fd);
		text = read_text(path);
	}
	return text;
}

int file_probe_fill(struct file_probe *p)
{
	char path[64], link[8192];
	ssize_t length;

	p->flags = fcntl(p->fd, F_GETFL);
	if (p->flags < 0)
		return -errno;
	if (fstatfs(p->fd, &p->fs))
		memset(&p->fs, 0, sizeof(p->fs));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	length = readlink(path, link, sizeof(link) - 1);
	if (length < 0)
		return -errno;
	link[length] = '\0';
	p->link = strdup(link);
	if (!p->link)
		return -ENOMEM;
	p->fdinfo = file_probe_fdinfo(p);
	return p->fdinfo ? 0 : -errno;
}
