// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors of a process that shares its memory with another one (CLONE_VM), but has a table of its
 * own: it is created like a thread (restart/process.c), with a copy of the other's table, and
 * runs none of our code in which a file could be installed.  And what other processes have opened that
 * tells of it.
 */
#include "resource/resource.h"

#include <errno.h>

#include "report/report.h"
#include "resource/family.h"
#include "resource/file.h"

/*
 * Has it got the descriptor from the owner of the memory?  Where the description itself is changed
 * when it is installed, it is enough that the owner has that.
 */
static bool is_inherited(const Kcr__Process *owner, const Kcr__Descriptor *d, const Kcr__File *file)
{
	const struct file_kind *kind = file_kind_of(file->kind_case);
	bool any = file->kind_case == KCR__FILE__KIND_EPOLL || !kind || !kind->install;

	return process_has_number(owner, d->file_id, any ? -1 : d->fd);
}

/* An owner that is a thread is told by the script of its process. */
static bool is_installed(const Kcr__File *file, Kcr__Process *const *process, size_t count)
{
	const struct file_kind *kind = file_kind_of(file->kind_case);

	switch (file->kind_case) {
	case KCR__FILE__KIND_TERMINAL:	/* only what stands in for one that is not there */
	case KCR__FILE__KIND_USER_FAULT:
		return false;
	case KCR__FILE__KIND_REGULAR:
		return own_proc_is_among(file->regular->path, process, count);
	case KCR__FILE__KIND_DIRECTORY:
		return own_proc_is_among(file->directory->path, process, count);
	default:
		return (kind && kind->install) || (file->has_owner && !file->owner_thread);
	}
}

static int check_sharer(const struct file_table *t, const Kcr__Process *owner, const Kcr__Process *q,
			Kcr__Process *const *process, size_t count)
{
	for (size_t i = 0; i < q->n_descriptor; i++) {
		const Kcr__Descriptor *d = q->descriptor[i];
		const Kcr__File *file = file_table_get(t, d->file_id);

		if (file && !is_inherited(owner, d, file) && is_installed(file, process, count))
			return report_fail(-EOPNOTSUPP, "process %d, descriptor %d: %s, which a process that "
					   "shares its memory with another one cannot be given",
					   q->pid, d->fd, file->description);
	}
	return 0;
}

/* Does the file tell of this process? */
static bool tells_of(const Kcr__File *file, Kcr__Process *const *process)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_PIDFD:
		return file->pidfd->pid == process[0]->pid;
	case KCR__FILE__KIND_REGULAR:
		return own_proc_is_among(file->regular->path, process, 1);
	case KCR__FILE__KIND_DIRECTORY:
		return own_proc_is_among(file->directory->path, process, 1);
	default:
		return false;
	}
}

/* When files are installed, it does not exist yet. */
static int check_watched(const struct file_table *t, Kcr__Process *const *sharer)
{
	pid_t pid = sharer[0]->pid;

	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);
		const Kcr__File *file = file_table_get(t, id);

		if (tells_of(file, sharer))
			return report_fail(-EOPNOTSUPP, "process %d, descriptor %d: %s, of process %d, which "
					   "shares its memory with another one: it cannot be opened again",
					   p->pid, p->number, file->description ?: "a file", pid);
		if (file->has_owner && !file->owner_thread && file->owner == pid)
			report_warn("process %d, descriptor %d: its signals (F_SETOWN) go to process %d, "
				    "which shares its memory with another one: they do not come any more "
				    "after a restart", p->pid, p->number, pid);
	}
	return 0;
}

int sharers_check(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (!process_is_sharer(process[i]))
			continue;
		err = check_watched(t, &process[i]);
		for (size_t k = 0; k < count && !err; k++)
			if (process[k]->mm && process[k]->mm_id == process[i]->mm_id &&
			    process[k]->files_id != process[i]->files_id)
				err = check_sharer(t, process[k], process[i], process, count);
	}
	return err;
}
