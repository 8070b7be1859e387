// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and processes in the same memory with working folders of their own.  See
 * thread_folder.h.  With a root folder of its own, or in a removed folder, one is refused.
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
	struct stat process, theirs, named;

	if (!status || stat(proc_path(path, probe->thread, "root"), &process) ||
	    stat(proc_path(path, t->tid, "root"), &theirs))
		return report_fail(-EIO, "thread %d: cannot see its root folder", t->tid);
	if (process.st_dev != theirs.st_dev || process.st_ino != theirs.st_ino)
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

struct own_folder {
	const void *who;		/* a Kcr__Thread, or a Kcr__Process in the same memory */
	int fd;				/* above the saved descriptors */
	uint32_t umask;
};

/* In the process that is being rebuilt. */
static struct {
	const Kcr__Process *owner;
	int here;			/* its own folder, if there are others */
	struct own_folder *list;
	size_t count;
} own;

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

/* Opens the folder of `who`, whose credentials are c. */
static int add(const struct rebuild *r, const void *who, pid_t id, const char *cwd, bool at_path,
	       const Kcr__Credentials *c, uint32_t umask)
{
	struct own_folder *larger = realloc(own.list, (own.count + 1) * sizeof(*larger));
	const char *path = rebuild_path(r, cwd);
	int fd = -ENOMEM;

	if (larger)
		own.list = larger;
	if (larger && !own.count)	/* the way back */
		own.here = open_here(r);
	if (larger && path && own.here >= 0)
		fd = identity_chdir(path, c, at_path) ?: open_here(r);
	if (fd >= 0)
		larger[own.count++] = (struct own_folder){ who, fd, umask };
	else
		report_errno(fd, "process %d: cannot enter the working folder %s of %d",
			     own.owner->pid, path ?: cwd, id);
	rebuild_path_free(path, cwd);
	return fd < 0 ? fd : 0;
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ?: "", b ?: "");
}

/* A process in the memory of p that does not share its folder with it. */
static int add_sharer(const struct rebuild *r, const Kcr__Process *p, const Kcr__Process *q)
{
	if (q == p || q->state == KCR__PROCESS__STATE__ZOMBIE || q->mm || q->mm_id != p->mm_id ||
	    q->fs_id == p->fs_id || !q->cwd)
		return 0;
	if (q->cwd_removed || !same_text(q->root, p->root))
		return report_fail(-EOPNOTSUPP, "process %d shares its memory with process %d, but not "
				   "its root folder, or is in a removed one: that cannot be restarted",
				   q->pid, p->pid);
	return add(r, q, q->pid, q->cwd, q->cwd_at_path, q->credentials, q->umask);
}

static int rebuild(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	own.owner = p;
	for (size_t i = 0; i < p->n_thread && !err; i++) {
		const Kcr__Thread *t = p->thread[i];

		if (t->cwd)
			err = add(r, t, t->tid, t->cwd, t->cwd_at_path,
				  t->credentials ?: p->credentials, t->umask);
	}
	for (size_t i = 0; i < r->context->nr_processes && !err; i++)
		err = add_sharer(r, p, r->context->process[i]);
	if (!err && own.count && fchdir(own.here))
		err = report_errno(-errno, "process %d: working folder", p->pid);
	return err;
}

static const struct own_folder *find(const Kcr__Process *p, const void *who)
{
	for (size_t i = 0; own.owner == p && i < own.count; i++)
		if (own.list[i].who == who)
			return &own.list[i];
	return NULL;
}

void thread_folder_enter(const Kcr__Process *p, const void *who, struct script *s)
{
	const struct own_folder *f = find(p, who);

	if (!f)
		return;
	script_call(s, "fchdir", SYS_fchdir, f->fd, 0, 0, 0, 0, 0);
	script_call_try(s, "umask", SYS_umask, f->umask, 0, 0, 0, 0, 0);
}

void thread_folder_leave(const Kcr__Process *p, const void *who, struct script *s)
{
	if (!find(p, who))
		return;
	script_call(s, "fchdir", SYS_fchdir, own.here, 0, 0, 0, 0, 0);
	script_call_try(s, "umask", SYS_umask, p->umask, 0, 0, 0, 0, 0);
}

const struct attribute attribute_thread_folder = {
	.name = "working folders of threads",
	.save_thread = save_thread,
	.rebuild = rebuild,
};
