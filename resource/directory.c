// SPDX-License-Identifier: GPL-2.0
/*
 * Open directories: by path.  A deleted directory cannot be created again
 * invisibly to other programs, so it is refused.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static bool match(const struct file_probe *probe)
{
	return S_ISDIR(probe->st.st_mode);
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__Directory *directory;

	if (probe_is_deleted(probe))
		return file_unsupported(t, "a deleted directory");
	if (own_proc_is_of_thread(probe))
		return file_unsupported(t, "a directory of /proc of another thread than the first "
					"of its process");
	if (probe->link[0] != '/')
		return file_unsupported(t, "a directory outside this root directory");
	directory = file_new_kind(file, KCR__FILE__KIND_DIRECTORY, sizeof(*directory));
	if (!directory)
		return -ENOMEM;
	directory->path = file_string(probe->link);
	return directory->path ? 0 : -ENOMEM;
}

static int open_directory(struct rebuild *r, const Kcr__File *file)
{
	int flags = rebuild_open_flags(file) | O_DIRECTORY;
	int fd = own_proc_has(r, file->directory->path) ?
		 own_proc_open(r, file->directory->path, flags) :
		 rebuild_open_path(r, file->directory->path, flags, 0);

	if (fd == -EPERM && flags & O_NOATIME)
		fd = rebuild_open_path(r, file->directory->path, flags & ~O_NOATIME, 0);

	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	return rebuild_put(r, file->id, fd);
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
	.install = install,
};
