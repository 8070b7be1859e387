// SPDX-License-Identifier: GPL-2.0
/*
 * The working folder and the file mode mask.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/removed_folder.h"

struct folder {
	char path[PATH_MAX];
	bool at_path;		/* it leads there: not if it is in another mount namespace */
	bool removed;
	mode_t mode;
};

static void cut_suffix(char *path)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(path), end = sizeof(suffix) - 1;

	if (length > end && !strcmp(path + length - end, suffix))
		path[length - end] = '\0';
}

/* The working folder, if a restart can enter it or one like it. */
static int find_folder(const struct process_probe *probe, struct folder *f)
{
	struct stat st, named;
	char path[PROC_PATH];
	ssize_t length;

	length = proc_link(probe->thread, "cwd", f->path, sizeof(f->path));
	if (length < 0)
		return report_errno(length, "process %d: cannot see its working folder", probe->pid);
	if (stat(proc_path(path, probe->thread, "cwd"), &st) < 0)
		return report_errno(-errno, "process %d: working folder %s", probe->pid, f->path);
	if (f->path[0] != '/')
		return report_fail(-EOPNOTSUPP, "process %d: its working folder %s is out of reach",
				   probe->pid, f->path);
	f->removed = !st.st_nlink;
	if (f->removed)
		cut_suffix(f->path);
	f->mode = st.st_mode & 07777;
	f->at_path = !f->removed && !lstat(f->path, &named) && named.st_ino == st.st_ino &&
		     named.st_dev == st.st_dev;
	return 0;
}

static int cwd_check(const struct process_probe *probe)
{
	struct folder folder;

	return find_folder(probe, &folder);
}

static int cwd_save(const struct process_probe *probe, Kcr__Process *p)
{
	struct folder folder;
	int err = find_folder(probe, &folder);

	if (err)
		return err;
	p->has_cwd_at_path = p->cwd_at_path = folder.at_path;
	p->has_cwd_removed = p->has_cwd_mode = p->cwd_removed = folder.removed;
	p->cwd_mode = folder.mode;
	p->cwd = strdup(folder.path);
	if (!p->cwd)
		return report_errno(-ENOMEM, "process %d: working folder", probe->pid);
	p->has_umask = true;
	p->umask = status_number(probe->status, "Umask", 8, 022);
	return 0;
}

static int enter_removed(const struct rebuild *r, const Kcr__Process *p)
{
	int fd, err = identity_enter(p->credentials);

	if (err)
		return err;
	fd = removed_folder_open(r, p->cwd);
	identity_leave();
	err = fd < 0 ? fd : fchdir(fd) ? -errno : 0;
	if (err)
		report_errno(err, "process %d: cannot make a removed working folder", p->pid);
	else if (fchmod(fd, p->cwd_mode & 01777))
		report_verbose("process %d: its working folder has another mode", p->pid);
	if (fd >= 0)
		close(fd);
	return err;
}

static int enter(const struct rebuild *r, const Kcr__Process *p)
{
	const char *path = rebuild_path(r, p->cwd);
	int err = path ? identity_chdir(path, p->credentials, p->cwd_at_path) : -ENOMEM;

	if (err)
		report_errno(err, "process %d: cannot enter its working folder %s", p->pid,
			     path ?: p->cwd);
	rebuild_path_free(path, p->cwd);
	return err;
}

static int cwd_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	if (p->cwd)
		err = p->cwd_removed ? enter_removed(r, p) : enter(r, p);
	if (!err && p->has_umask)
		umask(p->umask);
	return err;
}

const struct attribute attribute_cwd = {
	.name = "working folder",
	.check = cwd_check,
	.save = cwd_save,
	.rebuild = cwd_rebuild,
};
