// SPDX-License-Identifier: GPL-2.0
/*
 * The root folder (chroot(2)).  All paths in an image are those of the caller's root
 * folder, as /proc shows them; a process with another one changes to it when everything
 * that has a path is done.  That takes CAP_SYS_CHROOT, so only root has such programs
 * saved and restarted: users would get an image that they cannot use.
 */
#include "resource/root_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/file.h"

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- save ------------------------------------------------------------------- */

int root_folder_differs(pid_t thread)
{
	static struct stat own;		/* does not change: read once */
	struct stat theirs;
	char path[PROC_PATH];

	if (stat(proc_path(path, thread, "root"), &theirs) < 0 ||
	    (!own.st_ino && stat("/", &own) < 0))
		return -errno;
	return !same_file(&own, &theirs);
}

/* Its path in ours; "/": the same.  Refused if a restart could not change to it. */
static int find_root(const struct process_probe *probe, char target[PATH_MAX])
{
	int differs = root_folder_differs(probe->thread);
	struct stat st, named;
	char path[PROC_PATH];
	ssize_t length;

	if (differs < 0)
		return report_errno(differs, "process %d: cannot see its root folder", probe->pid);
	strcpy(target, "/");
	if (!differs)
		return 0;
	length = proc_link(probe->thread, "root", target, PATH_MAX);
	if (length < 0 || stat(proc_path(path, probe->thread, "root"), &st) < 0)
		return report_fail(-EIO, "process %d: cannot see its root folder", probe->pid);
	if (target[0] != '/' || lstat(target, &named) < 0 || !same_file(&st, &named))
		return report_fail(-EOPNOTSUPP, "process %d: its root folder %s has been removed or "
				   "is out of reach: a restart could not change to it", probe->pid,
				   target);
	if (!have_capability(CAP_SYS_CHROOT))
		return report_fail(-EPERM, "process %d: its root folder is %s (chroot), which only "
				   "root can restore: run cr_checkpoint as root", probe->pid, target);
	return 0;
}

static int root_check(const struct process_probe *probe)
{
	char target[PATH_MAX];

	return find_root(probe, target);
}

static int root_save(const struct process_probe *probe, Kcr__Process *p)
{
	char target[PATH_MAX];
	int err = find_root(probe, target);

	if (err)
		return err;
	p->root = strdup(target);
	return p->root ? 0 : report_errno(-ENOMEM, "process %d: root folder", probe->pid);
}

/* ---- rebuild ------------------------------------------------------------------ */

/* In the process that is being rebuilt. */
static struct {
	const Kcr__Process *owner;	/* NULL: it keeps its root */
	int root, cwd;			/* above the saved descriptors */
} to_change;

/* An O_PATH descriptor, not one of those that the program has; or -errno. */
static int take_high(const struct rebuild *r, int fd)
{
	int high;

	if (fd < 0)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
	if (high < 0)
		high = -errno;
	close(fd);
	return high;
}

static int root_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	const int flags = O_PATH | O_DIRECTORY;
	int here;

	if (!p->root || !strcmp(p->root, "/"))
		return 0;
	if (!have_capability(CAP_SYS_CHROOT))
		return report_fail(-EPERM, "process %d: its root folder is %s (chroot), which only "
				   "root can restore: restart it as root, and a user's image with "
				   "--trust", p->pid, p->root);
	to_change.root = take_high(r, rebuild_open_path(r, p->root, flags, 0));
	if (to_change.root < 0)
		return report_errno(to_change.root, "process %d: cannot open its root folder %s",
				    p->pid, p->root);
	here = open(".", flags | O_CLOEXEC);
	to_change.cwd = take_high(r, here < 0 ? -errno : here);
	if (to_change.cwd < 0)
		return report_errno(to_change.cwd, "process %d: its working folder", p->pid);
	to_change.owner = p;
	return 0;
}

static int root_script(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	(void)r;
	if (to_change.owner != p)
		return 0;
	script_call(s, "fchdir", SYS_fchdir, to_change.root, 0, 0, 0, 0, 0);
	script_call(s, "chroot", SYS_chroot, script_data(s, ".", 2), 0, 0, 0, 0, 0);
	script_call(s, "fchdir", SYS_fchdir, to_change.cwd, 0, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_root = {
	.name = "root folder",
	.check = root_check,
	.save = root_save,
	.rebuild = root_rebuild,
	.script = root_script,
};
