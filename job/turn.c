// SPDX-License-Identifier: GPL-2.0
/* One job at a time saves to a name.  See turn.h. */
#include "job/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/folder.h"
#include "report/report.h"

#define TRIES	100		/* to lock a file that others remove when they have done so */

static char *lock_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	int length = slash ? slash + 1 - path : 0;

	return folder_path("%.*s" TURN_FORMAT, length, path, path + length);
}

/* In a folder where others may write they may have made it. */
static int open_own(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid()))
		return fd;
	close(fd);
	return -1;
}

static bool is_still(int fd, const char *path)
{
	struct stat now, st;

	return !fstat(fd, &st) && !lstat(path, &now) && st.st_dev == now.st_dev && st.st_ino == now.st_ino;
}

/* A descriptor, -EAGAIN: it was removed meanwhile, -EALREADY, or -1: there are no locks. */
static int lock(const char *path)
{
	int fd = open_own(path), err;

	if (fd < 0)
		return -1;
	err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (!err && is_still(fd, path))
		return fd;
	close(fd);
	if (!err)
		return -EAGAIN;
	return err == -EWOULDBLOCK ? -EALREADY : -1;
}

int turn_take(struct turn *t, const char *path)
{
	int fd = -EAGAIN;

	*t = (struct turn){ .path = lock_path(path), .fd = -1 };
	if (!t->path)
		return report_fail(-ENOMEM, "no memory");
	for (int i = 0; i < TRIES && fd == -EAGAIN; i++)
		fd = lock(t->path);
	if (fd >= 0) {
		t->fd = fd;
		return 0;
	}
	if (fd == -EALREADY)
		report_fail(fd, "another job is saving to %s: give each job a name of its own (--save, "
			    "--file), or, if none is, remove %s", path, t->path);
	free(t->path);
	t->path = NULL;
	return fd == -EALREADY ? fd : 0;
}

void turn_end(struct turn *t)
{
	if (!t->path)
		return;
	unlink(t->path);
	close(t->fd);
	free(t->path);
	*t = (struct turn){ .fd = -1 };
}
