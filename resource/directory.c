// SPDX-License-Identifier: GPL-2.0
/*
 * Open directories: by path.  One that had been removed is replaced by another that is
 * removed.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/removed_folder.h"

static bool match(const struct file_probe *probe)
{
	return S_ISDIR(probe->st.st_mode);
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	bool deleted = probe_is_deleted(probe);
	Kcr__Directory *directory;

	if (deleted && probe->fs.f_type == PROC_SUPER_MAGIC)
		return file_unsupported(t, "a directory of a process that has ended");
	if (own_proc_is_of_thread(probe))
		return file_unsupported(t, "a directory of /proc of another thread than the first "
					"of its process");
	if (probe->link[0] != '/')
		return file_unsupported(t, "a directory outside this root directory");
	directory = file_new_kind(file, KCR__FILE__KIND_DIRECTORY, sizeof(*directory));
	if (!directory)
		return -ENOMEM;
	directory->path = probe_path(probe, deleted);
	directory->has_deleted = directory->has_mode = directory->deleted = deleted;
	directory->mode = probe->st.st_mode & 07777;
	return directory->path ? 0 : -ENOMEM;
}

static int open_removed(struct rebuild *r, const Kcr__File *file)
{
	int folder = removed_folder_open(r, file->directory->path), fd;

	if (folder < 0)
		return rebuild_error(file, folder, "a folder cannot be made");
	fd = proc_fd_reopen(folder, (rebuild_open_flags(file) & ~O_NOFOLLOW) | O_DIRECTORY);
	if (fd >= 0 && fchmod(folder, file->directory->mode & 01777))
		report_verbose("a removed folder has another mode than before");
	close(folder);
	return fd < 0 ? rebuild_error(file, fd, "it cannot be opened") :
			rebuild_put(r, file->id, fd);
}

static int open_directory(struct rebuild *r, const Kcr__File *file)
{
	int flags = rebuild_open_flags(file) | O_DIRECTORY, fd;

	if (file->directory->deleted)
		return open_removed(r, file);
	fd = own_proc_has(r, file->directory->path) ?
	     own_proc_stand_in(r, file, file->directory->path) :
	     rebuild_open_path(r, file->directory->path, flags, 0);
	if (fd == -EPERM && flags & O_NOATIME)
		fd = rebuild_open_path(r, file->directory->path, flags & ~O_NOATIME, 0);

	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	return rebuild_put(r, file->id, fd);
}

static int check(struct rebuild *r, const Kcr__File *file)
{
	return file->directory->deleted ? 0 : open_directory(r, file);
}

static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	return own_proc_install(r, process, file, file->directory->path, number);
}

const struct file_kind file_kind_directory = {
	.kind = KCR__FILE__KIND_DIRECTORY,
	.name = "directory",
	.match = match,
	.save = save,
	.open = open_directory,
	.check = check,
	.install = install,
};
