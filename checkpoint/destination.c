// SPDX-License-Identifier: GPL-2.0
/*
 * The context file grows as DIR/.NAME.tmp and gets its name at the end, so
 * that NAME is complete whenever it exists.  The temporary file is locked
 * while it is written: one that nobody holds was left by a run that was killed
 * and is taken away; one that is held belongs to another run.
 */
#include "checkpoint/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "image/place.h"
#include "report/report.h"

#define MAX_TRIES	5

/* What checkpoint_abandon() removes: written before `unfinished_dir` is set. */
static char unfinished[NAME_MAX + 1];
static volatile int unfinished_dir = -1;

void checkpoint_abandon(void)
{
	if (unfinished_dir >= 0)
		unlinkat(unfinished_dir, unfinished, 0);
}

/* So that no handler runs between a change of the folder and its record. */
static void hold_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

static int open_descriptor(struct destination *d, int fd)
{
	int mode = fcntl(fd, F_GETFL);

	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return report_fail(-EBADF, "descriptor %d is not open for writing", fd);
	d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (d->fd < 0)
		return report_errno(-errno, "descriptor %d", fd);
	if (!(mode & O_APPEND))
		d->start = lseek(d->fd, 0, SEEK_CUR);
	return 0;
}

/* Takes over a place; *d gets its folder, and two names in it. */
static int take_place(struct destination *d, struct place *p, const char *path)
{
	const char *slash = strrchr(path, '/');

	d->dir_fd = p->folder;
	p->folder = -1;
	if (strlen(p->name) + strlen("..tmp") > NAME_MAX)
		return report_errno(-ENAMETOOLONG, "%s", path);
	d->name = strdup(p->name);
	d->directory = slash ? strndup(path, slash > path ? slash - path : 1) : strdup(".");
	if (!d->name || !d->directory || asprintf(&d->temporary, ".%s.tmp", p->name) < 0)
		return report_errno(-ENOMEM, "%s", path);
	return 0;
}

static int other_run(const struct destination *d)
{
	return report_fail(-EBUSY, "%s/%s is being written by another checkpoint", d->directory,
			   d->name);
}

/* A lock says something only about a file that still has the name. */
static bool has_name(const struct destination *d, int fd, const char *name)
{
	struct stat open_one, named;

	return !fstat(fd, &open_one) && !fstatat(d->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static int remove_name(const struct destination *d)
{
	if (!unlinkat(d->dir_fd, d->temporary, 0) || errno == ENOENT)
		return 0;
	return report_errno(-errno, "cannot remove %s/%s, left by an earlier run", d->directory,
			    d->temporary);
}

/*
 * Removes a temporary file that a killed run has left; -EBUSY: a run is at it;
 * -EAGAIN (silently): it was exchanged meanwhile.
 */
static int remove_stale(struct destination *d)
{
	int fd = openat(d->dir_fd, d->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return remove_name(d);	/* a link or socket: of no run */
	if (fd < 0)
		return report_errno(-errno, "cannot open %s/%s, left by an earlier run",
				    d->directory, d->temporary);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		err = other_run(d);
	else if (!has_name(d, fd, d->temporary))
		err = -EAGAIN;
	else
		err = remove_name(d);
	close(fd);
	return err;
}

/* Creates and locks it; it is recorded as unfinished.  -EAGAIN: taken for a stale one. */
static int create_new(struct destination *d)
{
	sigset_t old;
	int err = 0;

	hold_signals(&old);
	d->fd = openat(d->dir_fd, d->temporary,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (d->fd < 0) {
		err = errno == EEXIST ? -EAGAIN : -errno;
	} else if ((flock(d->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) ||
		   !has_name(d, d->fd, d->temporary)) {
		err = -EAGAIN;
		close(d->fd);
		d->fd = -1;
	} else {
		strcpy(unfinished, d->temporary);
		unfinished_dir = d->dir_fd;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int create_temporary(struct destination *d)
{
	int err, tries = 0;

	do {
		err = remove_stale(d);
		if (!err)
			err = create_new(d);
	} while (err == -EAGAIN && ++tries < MAX_TRIES);
	if (err == -EAGAIN)
		return other_run(d);
	if (err)
		return report_errno(err, "cannot create %s in %s", d->name, d->directory);
	fchmod(d->fd, 0400);		/* whatever the mask says */
	d->start = 0;
	return 0;
}

static int open_file(struct destination *d, struct place *p, const char *path, bool exists)
{
	int err;

	if (exists && d->replace == CHECKPOINT_NOCLOBBER)
		return report_fail(-EEXIST, "%s exists already (--noclobber)", path);
	err = take_place(d, p, path);
	if (!err)
		err = create_temporary(d);
	if (!err && exists && d->replace == CHECKPOINT_CLOBBER &&
	    unlinkat(d->dir_fd, d->name, 0) && errno != ENOENT)
		err = report_errno(-errno, "cannot remove %s", path);
	return err;
}

static int open_place(struct destination *d, struct place *p, const char *path)
{
	struct stat st;

	if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return report_errno(-errno, "%s", path);
		/* A symbolic link that leads nowhere gives way. */
		if (p->followed) {
			int err;

			place_close(p);
			err = place_find(p, path, false);
			if (err)
				return err;
		}
		return open_file(d, p, path, false);
	}
	if (S_ISDIR(st.st_mode))
		return report_fail(-EISDIR, "%s is a directory: name a file", path);
	if (S_ISREG(st.st_mode))	/* a symbolic link to it stays one */
		return open_file(d, p, path, true);
	d->fd = place_open_special(p, path);
	return d->fd < 0 ? d->fd : 0;
}

static int open_path(struct destination *d, const char *path)
{
	struct place p;
	int err = place_find(&p, path, true);

	if (!err)
		err = open_place(d, &p, path);
	place_close(&p);
	return err;
}

int destination_open(struct destination *d, const struct checkpoint_options *options)
{
	int err;

	*d = (struct destination) {
		.fd = -1, .dir_fd = -1, .start = -1,
		.replace = options->replace, .backup = options->backup, .sync = options->sync,
	};
	err = options->path ? open_path(d, options->path) : open_descriptor(d, options->fd);
	if (err)
		destination_close(d);
	return err;
}

int destination_rewind(struct destination *d)
{
	if (d->start < 0 || ftruncate(d->fd, d->start) || lseek(d->fd, d->start, SEEK_SET) < 0)
		return -ESPIPE;
	return 0;
}

int destination_sync(struct destination *d)
{
	if (!d->sync || !fsync(d->fd) || errno == EINVAL)	/* a pipe or socket */
		return 0;
	return report_errno(-errno, "cannot write the context file");
}

static int backup_as(struct destination *d)
{
	struct place p;
	int err = place_find(&p, d->backup, false);

	if (!err && renameat(d->dir_fd, d->name, p.folder, p.name) && errno != ENOENT)
		err = report_errno(-errno, "cannot rename %s to %s", d->name, d->backup);
	place_close(&p);
	return err;
}

/* Moves the existing file out of the way; its name never points to nothing. */
static int backup(struct destination *d)
{
	char name[NAME_MAX + 1];

	if (d->backup)
		return backup_as(d);
	for (unsigned int n = 1; n < 1000000; n++) {
		if (snprintf(name, sizeof(name), "%s.~%u~", d->name, n) >= (int)sizeof(name))
			return report_errno(-ENAMETOOLONG, "backup of %s", d->name);
		if (!faccessat(d->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!linkat(d->dir_fd, d->name, d->dir_fd, name, 0) || errno == ENOENT)
			return 0;
		if (errno == EEXIST)
			continue;
		/* A file system without links. */
		if (renameat(d->dir_fd, d->name, d->dir_fd, name))
			return report_errno(-errno, "cannot rename %s to %s", d->name, name);
		return 0;
	}
	return report_fail(-EEXIST, "too many backups of %s", d->name);
}

/* As rename, but -EEXIST if the name is taken. */
static int rename_new(struct destination *d)
{
	if (!renameat2(d->dir_fd, d->temporary, d->dir_fd, d->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (linkat(d->dir_fd, d->temporary, d->dir_fd, d->name, 0))
		return -errno;
	return unlinkat(d->dir_fd, d->temporary, 0) ? -errno : 0;
}

static int appear(struct destination *d)
{
	sigset_t old;
	int err = 0;

	hold_signals(&old);
	if (d->replace == CHECKPOINT_NOCLOBBER)
		err = rename_new(d);
	else if (renameat(d->dir_fd, d->temporary, d->dir_fd, d->name))
		err = -errno;
	if (!err)
		unfinished_dir = -1;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int destination_commit(struct destination *d)
{
	int err = 0;

	if (d->dir_fd < 0)
		return 0;
	if (d->replace == CHECKPOINT_BACKUP)
		err = backup(d);
	if (err)
		return err;
	err = has_name(d, d->fd, d->temporary) ? appear(d) : -ESTALE;
	if (err == -EEXIST)
		return report_fail(err, "%s/%s exists already (--noclobber)", d->directory, d->name);
	if (err && err != -ESTALE)
		return report_errno(err, "cannot create %s in %s", d->name, d->directory);
	/* Who may write to the folder can rename what is in it. */
	if (err || !has_name(d, d->fd, d->name))
		return report_fail(-ESTALE, "%s/%s is not what was written: somebody has exchanged it",
				   d->directory, d->name);
	if (d->sync && fsync(d->dir_fd) && errno != EINVAL && errno != EROFS)
		return report_errno(-errno, "cannot write the folder %s", d->directory);
	return 0;
}

int destination_explain(const struct destination *d, int err)
{
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
	return report_fail(err, "not enough space in %s: %llu MB were free: nothing was saved",
			   d->directory ? d->directory : "the destination",
			   ((unsigned long long)fs.f_bavail * fs.f_frsize + 512ull * st.st_blocks) >> 20);
}

void destination_close(struct destination *d)
{
	if (unfinished_dir >= 0 && d->dir_fd == unfinished_dir)
		checkpoint_abandon();
	unfinished_dir = -1;
	if (d->fd >= 0)
		close(d->fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
	free(d->directory);
	free(d->name);
	free(d->temporary);
	*d = (struct destination) { .fd = -1, .dir_fd = -1, .start = -1 };
}
