// SPDX-License-Identifier: GPL-2.0
/*
 * Threads with a working folder of their own.  See thread_folder.h.  With a root folder of
 * its own, or in a removed folder, a thread is refused.
 */
#include "resource/thread_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/file.h"
#include "resource/identity.h"

/* ---- save ------------------------------------------------------------------- */

static int unusable(const struct process_probe *probe, pid_t tid, const char *why)
{
	return report_fail(-EOPNOTSUPP, "process %d: its thread %d has a working folder of its "
			   "own, and %s: that cannot be saved", probe->pid, tid, why);
}

static int save_folder(const struct process_probe *probe, Kcr__Thread *t)
{
	const char *status = probe_thread_status(probe, t->tid);
	char target[PATH_MAX], path[PROC_PATH];
	struct stat own, theirs, named;

	if (!status || stat(proc_path(path, probe->thread, "root"), &own) ||
	    stat(proc_path(path, t->tid, "root"), &theirs))
		return report_fail(-EIO, "thread %d: cannot see its root folder", t->tid);
	if (own.st_dev != theirs.st_dev || own.st_ino != theirs.st_ino)
		return unusable(probe, t->tid, "another root folder");
	if (proc_link(t->tid, "cwd", target, sizeof(target)) < 0 ||
	    stat(proc_path(path, t->tid, "cwd"), &theirs))
		return report_fail(-EIO, "thread %d: cannot see its working folder", t->tid);
	if (target[0] != '/' || !theirs.st_nlink)
		return unusable(probe, t->tid, "that has been removed or is out of reach");
	t->has_cwd_at_path = t->has_umask = true;
	t->cwd_at_path = !lstat(target, &named) && named.st_ino == theirs.st_ino &&
			 named.st_dev == theirs.st_dev;
	t->umask = status_number(status, "Umask", 8, 022);
	t->cwd = strdup(target);
	return t->cwd ? 0 : report_errno(-ENOMEM, "thread %d: working folder", t->tid);
}

static int save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	if (t->tid == probe->thread ||
	    syscall(SYS_kcmp, probe->thread, t->tid, KCMP_FS, 0, 0) <= 0)
		return 0;
	return save_folder(probe, t);
}

/* ---- rebuild ------------------------------------------------------------------ */

/* In the process that is being rebuilt: descriptors above the saved ones. */
static struct {
	const Kcr__Process *owner;	/* NULL: no thread needs anything */
	int *folder;			/* by index of the thread; -1: the process's */
	int own;			/* the process's */
} fds;

bool thread_folder_has(const Kcr__Thread *t)
{
	return t->cwd;
}

/* The current folder. */
static int open_here(const struct rebuild *r)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), high;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
	if (high < 0)
		high = -errno;
	close(fd);
	return high;
}

static int open_folder(const struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t)
{
	const char *path = rebuild_path(r, t->cwd);
	int err = path ? identity_chdir(path, t->credentials ?: p->credentials, t->cwd_at_path) :
			 -ENOMEM;

	if (!err)
		err = open_here(r);
	if (err < 0)
		report_errno(err, "process %d: cannot enter the working folder %s of its thread %d",
			     p->pid, path ?: t->cwd, t->tid);
	rebuild_path_free(path, t->cwd);
	return err;
}

static int open_all(const struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	fds.own = open_here(r);
	fds.folder = calloc(p->n_thread, sizeof(*fds.folder));
	if (fds.own < 0 || !fds.folder)
		return report_errno(fds.own < 0 ? fds.own : -ENOMEM, "process %d: working folder",
				    p->pid);
	for (size_t i = 0; i < p->n_thread && err >= 0; i++)
		err = fds.folder[i] = p->thread[i]->cwd ? open_folder(r, p, p->thread[i]) : 0;
	if (err >= 0 && fchdir(fds.own))
		err = report_errno(-errno, "process %d: working folder", p->pid);
	return err < 0 ? err : 0;
}

static int rebuild(struct rebuild *r, const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++) {
		if (!p->thread[i]->cwd)
			continue;
		fds.owner = p;
		return open_all(r, p);
	}
	return 0;
}

void thread_folder_enter(const Kcr__Process *p, const Kcr__Thread *t, struct script *s)
{
	for (size_t i = 0; fds.owner == p && i < p->n_thread; i++)
		if (p->thread[i] == t)
			script_call(s, "fchdir", SYS_fchdir, fds.folder[i], 0, 0, 0, 0, 0);
	script_call_try(s, "umask", SYS_umask, t->umask, 0, 0, 0, 0, 0);
}

void thread_folder_leave(const Kcr__Process *p, struct script *s)
{
	if (fds.owner == p)
		script_call(s, "fchdir", SYS_fchdir, fds.own, 0, 0, 0, 0, 0);
	script_call_try(s, "umask", SYS_umask, p->umask, 0, 0, 0, 0, 0);
}

const struct attribute attribute_thread_folder = {
	.name = "working folders of threads",
	.save_thread = save_thread,
	.rebuild = rebuild,
};
