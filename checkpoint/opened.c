// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped files, opened by path while the programs still run: to open them can
 * take long on a network file system, and the programs are not stopped for it.
 * A path that is another file by then is not found here (device, inode).
 */
#include "checkpoint/internal.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/proc.h"
#include "resource/build_id.h"

#define MAX_OPENED	512

struct opened {
	char *path;
	dev_t dev;
	ino_t ino;
	bool any_dev;		/* stat(2) returns another device than mappings have */
	int fd;			/* -1: taken, or could not be opened */
};

/* Opens it only if it is a regular file: others may have side effects. */
static int reopen_regular(int found)
{
	struct stat st;

	if (fstat(found, &st) || !S_ISREG(st.st_mode))
		return -1;
	return proc_fd_reopen(found, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

/* Opens a regular file for a private mapping, and reads its build ID; or -1. */
static int open_regular(const char *path, struct stat *st)
{
	int found = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	uint8_t id[BUILD_ID_MAX];

	if (found < 0)
		return -1;
	fd = reopen_regular(found);
	close(found);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) || fcntl(fd, F_SETFL, 0)) {
		close(fd);
		return -1;
	}
	build_id_of(fd, st, id);
	return fd;
}

void opened_prepare(struct checkpoint *c, const char *path)
{
	struct opened *o;
	struct stat st = {};
	struct statfs fs;

	for (size_t i = 0; i < c->nr_opened; i++)
		if (!strcmp(c->opened[i].path, path))
			return;
	if (!c->opened)
		c->opened = calloc(MAX_OPENED, sizeof(*c->opened));
	if (!c->opened || c->nr_opened == MAX_OPENED)
		return;			/* the rest is opened when needed */
	o = &c->opened[c->nr_opened];
	o->path = strdup(path);
	if (!o->path)
		return;
	c->nr_opened++;
	o->fd = open_regular(path, &st);
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	o->any_dev = o->fd >= 0 && !fstatfs(o->fd, &fs) &&
		     (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

int opened_take(struct checkpoint *c, const struct kcr_vma *v, const char *path)
{
	dev_t dev = makedev(v->dev_major, v->dev_minor);

	for (size_t i = 0; i < c->nr_opened; i++) {
		struct opened *o = &c->opened[i];
		int fd = o->fd;

		if (fd < 0 || o->ino != v->ino || (o->dev != dev && !o->any_dev) ||
		    strcmp(o->path, path))
			continue;
		o->fd = -1;
		return fd;
	}
	return -1;
}

void opened_free(struct checkpoint *c)
{
	for (size_t i = 0; i < c->nr_opened; i++) {
		if (c->opened[i].fd >= 0)
			close(c->opened[i].fd);
		free(c->opened[i].path);
	}
	free(c->opened);
	c->opened = NULL;
	c->nr_opened = 0;
}
