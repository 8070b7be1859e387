// SPDX-License-Identifier: GPL-2.0
/*
 * The context file is written as DIR/.NAME.tmp and renamed at the end, so
 * that NAME is complete whenever it exists.  The temporary file is locked
 * while it is written: an unlocked one was left by a killed run and is
 * removed, a locked one belongs to another run.
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
#include <unistd.h>

#include "checkpoint/kept.h"
#include "image/place.h"
#include "report/report.h"

#define MAX_TRIES	5

struct file_destination {
	struct destination destination;
	int dir_fd;
	char *directory;	/* for messages */
	char *name;		/* in the directory */
	char *temporary;	/* in the directory */
	enum checkpoint_replace replace;
	const char *backup;
	unsigned int keep;	/* files of this name, with older ones; 0: no matter */
	char *aside;		/* new name of the file `present`, or NULL */
	struct stat present;
};

static struct file_destination *file(const struct destination *d)
{
	return (struct file_destination *)d;
}

/* The file that checkpoint_abandon() removes; set before `unfinished_dir`. */
static char unfinished[NAME_MAX + 1];
static volatile int unfinished_dir = -1;

void checkpoint_abandon(void)
{
	if (unfinished_dir >= 0)
		unlinkat(unfinished_dir, unfinished, 0);
}

/* No handler may run between a change of the directory and of `unfinished`. */
static void hold_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

/* Takes over a place; *d gets its directory, and two names in it. */
static int take_place(struct file_destination *d, struct place *p, const char *path)
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

static int other_run(const struct file_destination *d)
{
	return report_fail(-EBUSY, "%s/%s is being written by another checkpoint", d->directory,
			   d->name);
}

/* A lock means something only if the file still has the name. */
static bool has_name(const struct file_destination *d, int fd, const char *name)
{
	struct stat open_one, named;

	return !fstat(fd, &open_one) && !fstatat(d->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static int remove_name(const struct file_destination *d)
{
	if (!unlinkat(d->dir_fd, d->temporary, 0) || errno == ENOENT)
		return 0;
	return report_errno(-errno, "cannot remove %s/%s, left by an earlier run", d->directory,
			    d->temporary);
}

/* NFS makes a POSIX lock of it, and an exclusive one only of a file that is open for writing. */
static bool is_locked(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return false;
	if (errno == EBADF && !flock(fd, LOCK_SH | LOCK_NB))
		return false;
	return errno == EWOULDBLOCK;
}

/*
 * Removes a temporary file left by a killed run; -EBUSY: a run is writing it;
 * -EAGAIN (silently): it was replaced meanwhile.
 */
static int remove_stale(struct file_destination *d)
{
	int fd = openat(d->dir_fd, d->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return remove_name(d);	/* a link or socket: not from any run */
	if (fd < 0)
		return report_errno(-errno, "cannot open %s/%s, left by an earlier run",
				    d->directory, d->temporary);
	if (is_locked(fd))
		err = other_run(d);
	else if (!has_name(d, fd, d->temporary))
		err = -EAGAIN;
	else
		err = remove_name(d);
	close(fd);
	return err;
}

/* Creates, locks and records it.  -EAGAIN: another run took it for a stale one. */
static int create_new(struct file_destination *d)
{
	sigset_t old;
	int err = 0;

	hold_signals(&old);
	d->destination.fd = openat(d->dir_fd, d->temporary,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (d->destination.fd < 0) {
		err = errno == EEXIST ? -EAGAIN : -errno;
	} else if ((flock(d->destination.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) ||
		   !has_name(d, d->destination.fd, d->temporary)) {
		err = -EAGAIN;
		close(d->destination.fd);
		d->destination.fd = -1;
	} else {
		strcpy(unfinished, d->temporary);
		unfinished_dir = d->dir_fd;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int create_temporary(struct file_destination *d)
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
	fchmod(d->destination.fd, 0400);		/* whatever the umask */
	d->destination.start = 0;
	return 0;
}

static int backup_as(struct file_destination *d)
{
	struct place p;
	int err = place_find(&p, d->backup, false);

	if (!err && renameat(d->dir_fd, d->name, p.folder, p.name) && errno != ENOENT)
		err = report_errno(-errno, "cannot rename %s to %s", d->name, d->backup);
	place_close(&p);
	return err;
}

/* Gives the existing file another name; its own stays in place if links are possible. */
static int backup_from(struct file_destination *d, unsigned long first)
{
	char name[NAME_MAX + 1];

	for (unsigned long n = first; n < first + 1000000; n++) {
		if (snprintf(name, sizeof(name), "%s.~%lu~", d->name, n) >= (int)sizeof(name))
			return report_errno(-ENAMETOOLONG, "backup of %s", d->name);
		if (!faccessat(d->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!linkat(d->dir_fd, d->name, d->dir_fd, name, 0) || errno == ENOENT)
			return 0;
		if (errno == EEXIST)
			continue;
		/* A file system without hard links. */
		if (renameat(d->dir_fd, d->name, d->dir_fd, name))
			return report_errno(-errno, "cannot rename %s to %s", d->name, name);
		return 0;
	}
	return report_fail(-EEXIST, "too many backups of %s", d->name);
}

static int backup(struct file_destination *d)
{
	struct kept kept;
	int err;

	if (d->replace == CHECKPOINT_BACKUP)
		return d->backup ? backup_as(d) : backup_from(d, 1);
	if (d->keep < 2)
		return 0;
	err = kept_find(d->dir_fd, d->name, &kept);
	if (err)
		return report_errno(err, "cannot look for older files of %s", d->name);
	return backup_from(d, kept.newest + 1);
}

/* As rename in the folder, but -EEXIST if the name is taken. */
static int rename_new(const struct file_destination *d, const char *from, const char *to)
{
	if (!renameat2(d->dir_fd, from, d->dir_fd, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (linkat(d->dir_fd, from, d->dir_fd, to, 0))
		return -errno;
	return unlinkat(d->dir_fd, from, 0) ? -errno : 0;
}

/* Does the file that is to be set aside have this name? */
static bool is_present(const struct file_destination *d, const char *name)
{
	struct stat st;

	return !fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_dev == d->present.st_dev && st.st_ino == d->present.st_ino;
}

/* Gives the existing file its new name; the old one stays if links are possible. */
static int set_aside(const struct file_destination *d)
{
	int err = 0;

	if (!is_present(d, d->name))
		return report_fail(-EBUSY, "%s/%s has been replaced meanwhile: nothing was saved",
				   d->directory, d->name);
	if (!linkat(d->dir_fd, d->name, d->dir_fd, d->aside, 0) || is_present(d, d->aside))
		return 0;
	if (errno == EEXIST)
		err = -EEXIST;
	else			/* a file system without hard links */
		err = rename_new(d, d->name, d->aside);
	return err ? report_errno(err, "cannot rename %s to %s", d->name, d->aside) : 0;
}

static int plan_aside(struct destination *destination, const char *name, const struct stat *st)
{
	struct file_destination *d = file(destination);

	d->present = *st;
	d->aside = strdup(name);
	if (!d->aside)
		return report_errno(-ENOMEM, "destination");
	if (!is_present(d, d->name))
		return report_fail(-EBUSY, "%s/%s is being replaced by another checkpoint: try again",
				   d->directory, d->name);
	return 0;
}

static int appear(struct file_destination *d)
{
	sigset_t old;
	int err = 0;

	hold_signals(&old);
	if (d->replace == CHECKPOINT_NOCLOBBER)
		err = rename_new(d, d->temporary, d->name);
	else if (renameat(d->dir_fd, d->temporary, d->dir_fd, d->name))
		err = -errno;
	if (!err)
		unfinished_dir = -1;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int commit(struct destination *destination)
{
	struct file_destination *d = file(destination);
	int err = d->aside ? set_aside(d) : backup(d);

	if (err)
		return err;
	err = has_name(d, d->destination.fd, d->temporary) ? appear(d) : -ESTALE;
	if (err == -EEXIST)
		return report_fail(err, "%s/%s exists already (--noclobber)", d->directory, d->name);
	if (err && err != -ESTALE)
		return report_errno(err, "cannot create %s in %s", d->name, d->directory);
	/* Anybody with write permission for the directory could have renamed it. */
	if (err || !has_name(d, d->destination.fd, d->name))
		return report_fail(-ESTALE, "%s/%s is not what was written: somebody has replaced it",
				   d->directory, d->name);
	if (d->destination.sync && fsync(d->dir_fd) && errno != EINVAL && errno != EROFS)
		return report_errno(-errno, "cannot sync the directory %s", d->directory);
	/* The new one is complete: what is too old may go, or stay. */
	err = d->keep ? kept_forget(d->dir_fd, d->name, d->keep - 1) : 0;
	if (err)
		report_warn("cannot remove what is older than the last %u of %s: %s", d->keep,
			    d->name, strerror(-err));
	return 0;
}

static void close_file(struct destination *destination)
{
	struct file_destination *d = file(destination);

	if (unfinished_dir >= 0 && d->dir_fd == unfinished_dir && has_name(d, d->destination.fd, unfinished))
		checkpoint_abandon();
	unfinished_dir = -1;
	if (d->destination.fd >= 0)
		close(d->destination.fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
	free(d->directory);
	free(d->name);
	free(d->temporary);
	free(d->aside);
	free(d);
}

static void path(const struct destination *destination, char *text, size_t size)
{
	const struct file_destination *d = file(destination);
	size_t length;

	destination_fd_path(d->dir_fd, text, size);
	length = strlen(text);
	if (length < 2 || length + strlen(d->name) >= size)
		text[0] = '\0';
	else
		strcpy(text + length - 1, d->name);	/* in the place of the dot */
}

static const char *folder(const struct destination *destination)
{
	return file(destination)->directory;
}

static int folder_fd(const struct destination *destination)
{
	return file(destination)->dir_fd;
}

static int open_file(struct file_destination *d, struct place *p, const char *name, bool exists)
{
	int err;

	if (exists && d->replace == CHECKPOINT_NOCLOBBER)
		return report_fail(-EEXIST, "%s exists already (--noclobber)", name);
	err = take_place(d, p, name);
	if (!err)
		err = create_temporary(d);
	if (!err && exists && d->replace == CHECKPOINT_CLOBBER &&
	    unlinkat(d->dir_fd, d->name, 0) && errno != ENOENT)
		err = report_errno(-errno, "cannot remove %s", name);
	return err;
}

int file_destination_open(struct destination **out, struct place *p,
			  const struct checkpoint_options *options, bool exists)
{
	static const struct destination_ops ops = {
		.rewind = destination_rewind_fd, .sync = destination_sync_fd, .commit = commit,
		.close = close_file, .path = path, .folder = folder, .folder_fd = folder_fd,
		.set_aside = plan_aside,
	};
	struct file_destination *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return report_errno(-ENOMEM, "destination");
	d->destination = (struct destination) {
		.ops = &ops, .fd = -1, .start = -1, .sync = options->sync,
	};
	d->dir_fd = -1;
	d->replace = options->replace;
	d->backup = options->backup;
	d->keep = options->keep;
	err = open_file(d, p, options->path, exists);
	if (err)
		close_file(&d->destination);
	else
		*out = &d->destination;
	return err;
}
