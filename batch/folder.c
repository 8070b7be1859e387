// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of a job's checkpoints; see folder.h.  Which checkpoints there are is what the
 * folder holds, not what the state says: that may be older, or lost when the disk was full.
 */
#include "batch/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/needed.h"
#include "job/destination.h"
#include "job/turn.h"
#include "proc/clock.h"
#include "report/report.h"

#define LOCK_PAUSE_US	100000
#define PROCESSES_SUFFIX	"context"
#define MPI_SUFFIX		"kcr"
#define PARTIAL_SUFFIX		".partial"
#define TEMPORARY_SUFFIX	".tmp"

bool folder_name_valid(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > FOLDER_NAME_MAX || *name == '.' || *name == '-')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_-.", *name))
			return false;
	return true;
}

/* ---- opening ----------------------------------------------------------------------- */

static int check_owner(const struct folder *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return report_errno(-errno, "%s", f->path);
	if (st.st_uid != geteuid())
		return report_fail(-EPERM, "%s belongs to user %u: name a folder of your own with "
				   "--dir", f->path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return report_fail(-EPERM, "others may write to %s, and so choose what is restarted: "
				   "chmod go-w %s", f->path, f->path);
	return 0;
}

int folder_open(struct folder *f, const char *path, const char *name, bool own)
{
	int err;

	f->fd = f->lock = -1;
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (own && mkdir(path, 0700) && errno != EEXIST)
		return report_errno(-errno, "cannot create the folder %s", path);
	if (!realpath(path, f->path))
		return report_errno(-errno, "cannot open the folder %s", path);
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (f->fd < 0)
		return report_errno(-errno, "cannot open the folder %s", f->path);
	err = own ? check_owner(f) : 0;
	if (err)
		folder_close(f);
	return err;
}

void folder_close(struct folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->lock >= 0)
		close(f->lock);
	f->fd = f->lock = -1;
}

char *folder_file(const char *name, const char *suffix, char out[NAME_MAX + 1])
{
	snprintf(out, NAME_MAX + 1, "%s.%s", name, suffix);
	return out;
}

/* Some file systems know no locks: Lustre without -o flock, NFS without its lock daemon. */
static bool has_no_locks(int err)
{
	return err == ENOSYS || err == ENOLCK || err == EOPNOTSUPP;
}

/* flock(2), tried again for patience_s as long as another has the lock.  0 or -errno. */
static int lock_in_time(int fd, unsigned int patience_s)
{
	uint64_t deadline = now_ns() + patience_s * 1000000000ull;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		/* A file server without a lock to spare, or that has just begun, says ENOLCK. */
		if ((errno != EWOULDBLOCK && errno != ENOLCK) || now_ns() >= deadline)
			return -errno;
		usleep(LOCK_PAUSE_US);
	}
	return 0;
}

int folder_lock(struct folder *f, unsigned int patience_s)
{
	char file[NAME_MAX + 1];
	int err;

	f->lock = openat(f->fd, folder_file(f->name, "lock", file),
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (f->lock < 0)
		return report_errno(-errno, "cannot open %s/%s", f->path, file);
	err = lock_in_time(f->lock, patience_s);
	if (!err)
		return 0;
	close(f->lock);
	f->lock = -1;
	if (has_no_locks(-err))
		return report_fail(-ENOLCK, "the file system of %s knows no locks: nothing prevents a "
				   "second cr_batch from working for the job %s", f->path, f->name);
	if (err != -EWOULDBLOCK)
		return report_errno(err, "cannot lock %s/%s", f->path, file);
	return report_fail(-EBUSY, "another cr_batch works for the job %s in %s: end it, or choose "
			   "another --name", f->name, f->path);
}

bool folder_is_locked(const struct folder *f, const char *name)
{
	char file[NAME_MAX + 1];
	int fd = openat(f->fd, folder_file(name, "lock", file),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

/* ---- checkpoints ------------------------------------------------------------------- */

/* Does the text begin so?  Then *rest is what follows. */
static bool has_prefix(const char *text, const char *prefix, const char **rest)
{
	size_t length = strlen(prefix);

	if (strncmp(text, prefix, length))
		return false;
	*rest = text + length;
	return true;
}

/* Is it the name of a checkpoint of this job? */
static bool parse_name(const struct folder *f, const char *file, struct folder_checkpoint *c)
{
	unsigned long number;
	const char *end;
	char *behind;

	if (!has_prefix(file, f->name, &end) || *end != '.' || !isdigit((unsigned char)end[1]))
		return false;
	number = strtoul(end + 1, &behind, 10);
	if (!number || number >= UINT32_MAX || *behind != '.')
		return false;
	end = behind + 1;
	c->number = (uint32_t)number;
	c->mpi = has_prefix(end, MPI_SUFFIX, &end);
	if (!c->mpi && !has_prefix(end, PROCESSES_SUFFIX, &end))
		return false;
	c->damaged = !strcmp(end, DAMAGED_SUFFIX);
	return c->damaged || !*end;
}

static int newest_first(const void *a, const void *b)
{
	const struct folder_checkpoint *left = a, *right = b;

	return left->number < right->number ? 1 : left->number > right->number ? -1 : 0;
}

static ssize_t read_checkpoints(const struct folder *f, DIR *list, bool damaged,
				struct folder_checkpoint **out)
{
	struct dirent *entry;
	ssize_t count = 0;

	while ((errno = 0, entry = readdir(list))) {
		struct folder_checkpoint one, *grown;
		struct stat st;

		if (!parse_name(f, entry->d_name, &one) || one.damaged != damaged)
			continue;
		if (fstatat(f->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno == ENOENT)
				continue;
			return report_errno(-errno, "cannot read %s/%s", f->path, entry->d_name);
		}
		if (one.mpi ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
			continue;
		one.created = st.st_mtime;
		grown = realloc(*out, (count + 1) * sizeof(*grown));
		if (!grown)
			return report_fail(-ENOMEM, "no memory");
		*out = grown;
		grown[count++] = one;
	}
	/* A list that lacks the newest ones would let the job fall back. */
	return errno ? report_errno(-errno, "cannot read the folder %s", f->path) : count;
}

/* NULL with errno. */
static DIR *open_list(const struct folder *f)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	int err = errno;

	if (fd >= 0 && !list) {
		close(fd);
		errno = err;
	}
	return list;
}

ssize_t folder_list(const struct folder *f, bool damaged, struct folder_checkpoint **out)
{
	DIR *list = open_list(f);
	ssize_t count;

	*out = NULL;
	if (!list)
		return report_errno(-errno, "cannot read the folder %s", f->path);
	count = read_checkpoints(f, list, damaged, out);
	closedir(list);
	if (count < 0) {
		free(*out);
		*out = NULL;
	} else if (count) {
		qsort(*out, count, sizeof(**out), newest_first);
	}
	return count;
}

char *folder_checkpoint_path(const struct folder *f, const struct folder_checkpoint *c,
			     char out[PATH_MAX])
{
	if (snprintf(out, PATH_MAX, "%s/%s.%u.%s%s", f->path, f->name, c->number,
		     c->mpi ? MPI_SUFFIX : PROCESSES_SUFFIX,
		     c->damaged ? DAMAGED_SUFFIX : "") >= PATH_MAX)
		out[PATH_MAX - 1] = '\0';	/* too long to be opened, which will be reported */
	return out;
}

int folder_set_aside(const struct folder *f, const struct folder_checkpoint *c)
{
	struct folder_checkpoint aside = *c;
	char path[PATH_MAX], new_path[PATH_MAX];

	aside.damaged = true;
	folder_checkpoint_path(f, c, path);
	if (rename(path, folder_checkpoint_path(f, &aside, new_path)))
		return report_errno(-errno, "cannot rename %s", path);
	return 0;
}

int folder_drop(const struct folder *f, const struct folder_checkpoint *c)
{
	char path[PATH_MAX], **gone = NULL;

	folder_checkpoint_path(f, c, path);
	if (!c->mpi)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	job_destination_remove(path, &gone);
	strings_free(gone);
	return 0;
}

/* The newest first, so that what is left of a chain can be restarted at any moment. */
static int remove_all_but(const struct folder *f, bool damaged, size_t keep)
{
	struct folder_checkpoint *all;
	ssize_t count = folder_list(f, damaged, &all);
	bool *needed = count > 0 ? calloc(count, sizeof(*needed)) : NULL;
	int err = count < 0 ? (int)count : count && !needed ? report_fail(-ENOMEM, "no memory") : 0;

	if (!err)
		err = needed_mark(f, all, count, keep, needed);
	for (ssize_t i = 0; i < count && !err; i++) {
		err = needed[i] ? 0 : folder_drop(f, &all[i]);
		if (err)
			report_errno(err, "checkpoint %u", all[i].number);
	}
	free(needed);
	free(all);
	return err;
}

int folder_prune(const struct folder *f, size_t keep)
{
	return remove_all_but(f, false, keep);
}

/* What a file is called, or, if it is not complete yet, will be; false: it is another one. */
static bool final_name(const char *file, char out[NAME_MAX + 1])
{
	size_t length, end = strlen(TEMPORARY_SUFFIX);

	snprintf(out, NAME_MAX + 1, "%s", file + (*file == '.'));
	length = strlen(out);
	if (*file != '.')
		return true;
	if (length <= end || strcmp(out + length - end, TEMPORARY_SUFFIX))
		return false;
	out[length - end] = '\0';
	return true;
}

/* Removes it if it is what a save of this job has left that was killed.  0 or -errno. */
static int remove_half(const struct folder *f, const char *file)
{
	char name[NAME_MAX + 1], path[PATH_MAX], *end, *at, **gone = NULL;
	struct folder_checkpoint c;

	snprintf(name, sizeof(name), "%s", file);
	end = name;
	while ((at = strstr(end + 1, PARTIAL_SUFFIX)))	/* the last */
		end = at;
	if (end > name && (!end[strlen(PARTIAL_SUFFIX)] || end[strlen(PARTIAL_SUFFIX)] == '.')) {
		*end = '\0';
		if (!parse_name(f, name, &c) || !c.mpi || c.damaged)
			return 0;
		if (snprintf(path, sizeof(path), "%s/%s", f->path, file) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		job_destination_remove(path, &gone);
		strings_free(gone);
		if (snprintf(path, sizeof(path), TURN_FORMAT, name) < (int)sizeof(path))
			unlinkat(f->fd, path, 0);
		return 0;
	}
	if (*file != '.' || !final_name(file, name) || !parse_name(f, name, &c))
		return 0;
	return unlinkat(f->fd, file, 0) && errno != ENOENT && errno != EISDIR ? -errno : 0;
}

static int remove_halves(const struct folder *f)
{
	DIR *list = open_list(f);
	struct dirent *entry;
	int err = 0;

	if (!list)
		return -errno;
	while ((entry = readdir(list))) {
		int failed = remove_half(f, entry->d_name);

		if (failed)
			err = failed;
	}
	closedir(list);
	return err;
}

int folder_clear(const struct folder *f)
{
	int err = remove_all_but(f, false, 0) ?: remove_all_but(f, true, 0) ?: remove_halves(f);

	report_clear();
	return err;
}

/* Is it a file of the job? */
static bool is_own(const struct folder *f, const char *file)
{
	static const char *const suffixes[] = { ".json", ".lock", ".log", ".script" };
	struct folder_checkpoint c;
	char name[NAME_MAX + 1];
	const char *rest;

	if (!final_name(file, name) || !has_prefix(name, f->name, &rest))
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (!strcmp(rest, suffixes[i]))
			return true;
	return parse_name(f, name, &c);
}

int folder_remove_job(const struct folder *f)
{
	int err = folder_clear(f);
	DIR *list = open_list(f);
	struct dirent *entry;

	if (!list)
		return report_errno(-errno, "cannot read the folder %s", f->path);
	while ((entry = readdir(list)))
		if (is_own(f, entry->d_name) && unlinkat(f->fd, entry->d_name, 0))
			err = -errno;
	closedir(list);
	rmdir(f->path);			/* other jobs may have files in it */
	return err ? report_errno(err, "cannot remove the files of the job %s in %s", f->name, f->path) : 0;
}

/* ---- small files ------------------------------------------------------------------- */

static int write_all(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0)
			return -errno;
		text += n;
		length -= n;
	}
	return fsync(fd) ? -errno : 0;
}

int folder_write(const struct folder *f, const char *suffix, const char *text)
{
	char file[NAME_MAX + 1], temporary[NAME_MAX + 8];
	int err, fd;

	folder_file(f->name, suffix, file);
	snprintf(temporary, sizeof(temporary), ".%s" TEMPORARY_SUFFIX, file);
	fd = openat(f->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text);
	close(fd);
	if (!err && renameat(f->fd, temporary, f->fd, file))
		err = -errno;
	if (err)
		unlinkat(f->fd, temporary, 0);
	return err;
}
