// SPDX-License-Identifier: GPL-2.0
/*
 * Chooses the kind of destination; what the kinds have in common.
 */
#include "checkpoint/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "image/place.h"
#include "proc/proc.h"
#include "report/report.h"

static int refuse_keep(void)
{
	return report_fail(-EINVAL, "--keep is for files: the context file goes to a stream");
}

static int open_descriptor(struct destination **out, const struct checkpoint_options *o)
{
	int mode = fcntl(o->fd, F_GETFL), fd;

	if (o->keep)
		return refuse_keep();
	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return report_fail(-EBADF, "descriptor %d is not open for writing", o->fd);
	fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return report_errno(-errno, "descriptor %d", o->fd);
	return stream_destination_open(out, fd, mode & O_APPEND, o->sync);
}

static int open_special(struct destination **out, struct place *p,
			const struct checkpoint_options *o)
{
	int fd = o->keep ? refuse_keep() : place_open_special(p, o->path);

	/* It has no offset to rewind to. */
	return fd < 0 ? fd : stream_destination_open(out, fd, true, o->sync);
}

static int open_place(struct destination **out, struct place *p,
		      const struct checkpoint_options *o)
{
	struct stat st;

	if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return report_errno(-errno, "%s", o->path);
		/* A dangling symbolic link is replaced. */
		if (p->followed) {
			int err;

			place_close(p);
			err = place_find(p, o->path, false);
			if (err)
				return err;
		}
		return file_destination_open(out, p, o, false);
	}
	if (S_ISDIR(st.st_mode))
		return report_fail(-EISDIR, "%s is a directory: name a file", o->path);
	if (S_ISREG(st.st_mode))	/* a symbolic link to it is kept */
		return file_destination_open(out, p, o, true);
	return open_special(out, p, o);
}

static int open_path(struct destination **out, const struct checkpoint_options *o)
{
	struct place p;
	int err = place_find(&p, o->path, true);

	if (!err)
		err = open_place(out, &p, o);
	place_close(&p);
	return err;
}

int destination_open(struct destination **out, const struct checkpoint_options *options)
{
	return options->path ? open_path(out, options) : open_descriptor(out, options);
}

int destination_set_aside(struct destination *d, const char *name, const struct stat *st)
{
	if (!d->ops->set_aside)
		return report_fail(-EINVAL, "the destination is no file, so it can keep no chain: name "
				   "the parent (--incremental=FILE)");
	return d->ops->set_aside(d, name, st);
}

int destination_link(const struct destination *d, int fd, const char *name)
{
	char path[PROC_PATH];

	if (!d->ops->folder_fd)
		return report_fail(-EINVAL, "the destination is no file, so nothing can be beside it");
	if (!linkat(AT_FDCWD, proc_fd_path(path, fd), d->ops->folder_fd(d), name, AT_SYMLINK_FOLLOW))
		return 0;
	return report_errno(-errno, "cannot make the link %s in %s", name, d->ops->folder(d));
}

void destination_unlink(const struct destination *d, const char *name)
{
	unlinkat(d->ops->folder_fd(d), name, 0);
}

int destination_explain(const struct destination *d, int err)
{
	unsigned long long free_bytes;
	const char *folder;
	struct statvfs fs;
	struct stat st;

	if ((err != -ENOSPC && err != -EDQUOT && err != -EFBIG) || fstatvfs(d->fd, &fs) ||
	    fstat(d->fd, &st))
		return err;
	report_clear();
	if (err == -EFBIG)
		return report_fail(err, "the context file is larger than the limit of file sizes "
				   "allows (see ulimit -f)");
	if (err == -EDQUOT)
		return report_fail(err, "the quota of disk space is used up: nothing was saved");
	free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize + 512ull * st.st_blocks;
	folder = d->ops->folder(d);
	return report_fail(err, "not enough space in %s: %llu MB were free: nothing was saved",
			   folder ?: "the destination", free_bytes >> 20);
}

int destination_rewind_fd(struct destination *d)
{
	if (d->start < 0 || ftruncate(d->fd, d->start) || lseek(d->fd, d->start, SEEK_SET) < 0)
		return -ESPIPE;
	return 0;
}

int destination_sync_fd(struct destination *d)
{
	if (!d->sync || !fsync(d->fd) || errno == EINVAL)	/* a pipe or socket */
		return 0;
	return report_errno(-errno, "cannot write the context file");
}

void destination_fd_path(int fd, char *path, size_t size)
{
	ssize_t length = proc_fd_link(fd, path, size - 2);
	struct stat st;

	if (length < 0 || path[0] != '/')
		length = 0;
	path[length] = '\0';
	if (length && !stat(path, &st) && S_ISDIR(st.st_mode))
		strcat(path, "/.");
}
