// SPDX-License-Identifier: GPL-2.0
/*
 * Regular files that are others at the restart than they were at the checkpoint.  A file
 * of the same size and time of modification counts as unchanged whatever its inode, so
 * that copies on another machine do.  See changed.h.
 */
#include "resource/changed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/redirect.h"

#define WARNINGS_MAX	10

/* Those that others care for: their contents are saved, or the open compares them. */
static bool is_ordinary(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;

	return file->kind_case == KCR__FILE__KIND_REGULAR && S_ISREG(regular->mode) &&
	       !(file->flags & O_PATH) && !regular->deleted && !regular->shared_memory &&
	       !regular->must_match && !own_proc_has(r, regular->path) &&
	       !redirect_has(r, file->id);
}

/* Does the kernel make up its contents when it is read? */
static bool is_made_up(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	switch (fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Looks with the program's rights, or the caller's own if these do not suffice. */
static int look_at(const struct rebuild *r, const Kcr__File *file)
{
	const int flags = O_PATH | (file->flags & O_NOFOLLOW);
	int fd, err = file_enter(r, file);

	if (err)
		return err;
	fd = rebuild_open_path(r, file->regular->path, flags, 0);
	identity_leave();
	if (fd == -EACCES)
		fd = rebuild_open_path(r, file->regular->path, flags, 0);
	return fd;
}

/* Has it changed?  If it cannot be seen, opening it will say why. */
static bool has_changed(const struct rebuild *r, const Kcr__File *file, struct stat *st)
{
	const Kcr__RegularFile *regular = file->regular;
	int fd = look_at(r, file);
	bool changed = false;

	if (fd < 0) {
		report_clear();
		return false;
	}
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && !is_made_up(fd))
		changed = (uint64_t)st->st_size != regular->size ||
			  st->st_mtim.tv_sec != regular->mtime_sec ||
			  (uint32_t)st->st_mtim.tv_nsec != regular->mtime_nsec;
	close(fd);
	return changed;
}

/* Is it open several times, and has been looked at before? */
static bool is_known(const struct rebuild *r, const Kcr__File *file)
{
	for (size_t i = 0; i < file->id - 1; i++) {
		const Kcr__File *f = r->context->file[i];

		if (is_ordinary(r, f) && !strcmp(f->regular->path, file->regular->path))
			return true;
	}
	return false;
}

static int report_change(const struct rebuild *r, const Kcr__RegularFile *regular,
			 const struct stat *st)
{
	const char *how = st->st_ino == regular->ino ? "has changed since the checkpoint" :
						       "is another file than at the checkpoint";

	if (r->strict_files)
		return report_fail(-ESTALE, "%s %s (%lld bytes, were %llu): bring it back, or leave "
				   "--strict-files out", regular->path, how,
				   (long long)st->st_size, (unsigned long long)regular->size);
	report_warn("%s %s (%lld bytes, were %llu)", regular->path, how, (long long)st->st_size,
		    (unsigned long long)regular->size);
	return 0;
}

int changed_files(struct rebuild *r)
{
	size_t count = 0;
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < r->context->nr_files && !err; i++) {
		const Kcr__File *file = r->context->file[i];

		if (!is_ordinary(r, file) || !has_changed(r, file, &st) || is_known(r, file))
			continue;
		if (++count <= WARNINGS_MAX)
			err = report_change(r, file->regular, &st);
	}
	if (count > WARNINGS_MAX)
		report_warn("%zu more open files have changed since the checkpoint",
			    count - WARNINGS_MAX);
	return err;
}
