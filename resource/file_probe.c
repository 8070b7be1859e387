// SPDX-License-Identifier: GPL-2.0
/*
 * What is read of every open file before its kind is known: from
 * the duplicate, except for what /proc shows of the descriptor itself.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"

char *file_probe_fdinfo(const struct file_probe *p)
{
	char name[32], *text;

	if (p->number < 0)
		return strdup("");
	/* Theirs has close-on-exec and POSIX locks; use ours if they have closed it. */
	snprintf(name, sizeof(name), "fdinfo/%d", p->number);
	text = proc_text(p->thread, name, NULL);
	if (!text) {
		snprintf(name, sizeof(name), "fdinfo/%d", p->fd);
		text = proc_text(PROC_SELF, name, NULL);
	}
	return text;
}

int file_probe_fill(struct file_probe *p)
{
	ssize_t length;
	char link[8192];

	p->flags = fcntl(p->fd, F_GETFL);
	if (p->flags < 0)
		return -errno;
	if (fstatfs(p->fd, &p->fs))
		memset(&p->fs, 0, sizeof(p->fs));
	length = proc_fd_link(p->fd, link, sizeof(link));
	if (length < 0)
		return length;
	p->link = strdup(link);
	if (!p->link)
		return -ENOMEM;
	p->fdinfo = file_probe_fdinfo(p);
	return p->fdinfo ? 0 : -errno;
}
