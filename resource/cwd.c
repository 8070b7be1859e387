// SPDX-License-Identifier: GPL-2.0
/*
 * The working folder, the root folder's name and the file mode mask.
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
#include "resource/identity.h"

/*
 * The path of the working folder, if a restart can enter it; *at_path: it leads there,
 * which it does not if the folder is in another mount namespace.
 */
static int find_folder(const struct process_probe *probe, char target[PATH_MAX], bool *at_path)
{
	struct stat st, named;
	char path[PROC_PATH];
	ssize_t length;

	length = proc_link(probe->thread, "cwd", target, PATH_MAX);
	if (length < 0)
		return report_errno(length, "process %d: cannot see its working folder", probe->pid);
	if (stat(proc_path(path, probe->thread, "cwd"), &st) < 0)
		return report_errno(-errno, "process %d: working folder %s", probe->pid, target);
	if (!st.st_nlink)
		return report_fail(-EOPNOTSUPP, "process %d: its working folder %s has been "
				   "removed: a restart could not enter it", probe->pid, target);
	if (target[0] != '/')
		return report_fail(-EOPNOTSUPP, "process %d: its working folder %s is out of reach",
				   probe->pid, target);
	*at_path = !lstat(target, &named) && named.st_ino == st.st_ino &&
		   named.st_dev == st.st_dev;
	return 0;
}

static int cwd_check(const struct process_probe *probe)
{
	char target[PATH_MAX];
	bool at_path;

	return find_folder(probe, target, &at_path);
}

static int cwd_save(const struct process_probe *probe, Kcr__Process *p)
{
	char target[PATH_MAX];
	bool at_path;
	int err = find_folder(probe, target, &at_path);

	if (err)
		return err;
	p->has_cwd_at_path = p->cwd_at_path = at_path;
	p->cwd = strdup(target);
	p->root = strdup("/");
	if (!p->cwd || !p->root)
		return report_errno(-ENOMEM, "process %d: working folder", probe->pid);
	p->has_umask = true;
	p->umask = status_number(probe->status, "Umask", 8, 022);
	return 0;
}

static int cwd_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	const char *path = p->cwd;
	int err;

	if (p->has_umask)
		umask(p->umask);
	if (!path)
		return 0;
	if (r->relocate)
		path = r->relocate(path);
	err = identity_chdir(path, p->credentials, p->cwd_at_path);
	if (err)
		return report_errno(err, "process %d: cannot enter its working folder %s",
				    p->pid, path);
	return 0;
}

const struct attribute attribute_cwd = {
	.name = "working folder",
	.check = cwd_check,
	.save = cwd_save,
	.rebuild = cwd_rebuild,
};
