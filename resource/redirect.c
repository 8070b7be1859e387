// SPDX-License-Identifier: GPL-2.0
/*
 * Regular files that the caller of cr_restart replaces.  See redirect.h.
 */
#include "resource/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"

/* The file behind a descriptor of a process, which may share another one's table; 0: none. */
static uint32_t find_file(const struct context *c, const Kcr__Process *p, int fd)
{
	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Process *q = c->process[i];

		if (q != p && !(p->has_files_id && q->has_files_id && q->files_id == p->files_id))
			continue;
		for (size_t k = 0; k < q->n_descriptor; k++)
			if (q->descriptor[k]->fd == fd)
				return q->descriptor[k]->file_id;
	}
	return 0;
}

static bool is_mapped(const struct context *c, uint32_t id)
{
	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Mm *mm = c->process[i]->mm;

		for (size_t k = 0; mm && k < mm->n_vma; k++)
			if (mm->vma[k]->file_id == id)
				return true;
	}
	return false;
}

/* Why it cannot be replaced; NULL: it can. */
static const char *obstacle(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;

	if (file->kind_case != KCR__FILE__KIND_REGULAR || !S_ISREG(regular->mode) ||
	    file->flags & O_PATH || own_proc_has(r, regular->path))
		return "is not a regular file (for pipes and terminals, redirect cr_restart itself)";
	if (regular->deleted || regular->shared_memory)
		return "is saved with its contents";
	if (is_mapped(r->context, file->id))
		return "is mapped into memory";
	return NULL;
}

static int resolve(struct rebuild *r, struct redirect *rule)
{
	pid_t pid = rule->pid ?: r->leader;
	const Kcr__Process *p = context_process(r->context, pid);
	const char *why;

	if (!p)
		return report_fail(-EINVAL, "--redirect: process %d is not in the context file", pid);
	rule->id = find_file(r->context, p, rule->fd);
	if (!rule->id)
		return report_fail(-EINVAL, "--redirect: process %d has no descriptor %d (cr_info "
				   "--all lists all)", pid, rule->fd);
	why = obstacle(r, context_file(r->context, rule->id));
	return why ? report_fail(-EINVAL, "--redirect: descriptor %d of process %d %s", rule->fd,
				 pid, why) : 0;
}

int redirect_resolve(struct rebuild *r)
{
	int err = 0;

	for (size_t i = 0; i < r->nr_redirects && !err; i++)
		err = resolve(r, &r->redirect[i]);
	return err;
}

bool redirect_has(const struct rebuild *r, uint32_t id)
{
	for (size_t i = 0; i < r->nr_redirects; i++)
		if (r->redirect[i].id == id)
			return true;
	return false;
}

/* Goes on where the program was; if it writes, at the end of what is shorter. */
static int set_position(int fd, const Kcr__File *file, bool writes)
{
	off_t position = file->has_position ? file->position : 0;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (writes && position > st.st_size)
		position = st.st_size;
	return lseek(fd, position, SEEK_SET) < 0 ? -errno : 0;
}

/*
 * With the caller's own rights; with the user's for an ordinary user's image, which
 * chooses whether the file is opened for reading, too.
 */
static int open_file(const struct rebuild *r, const Kcr__File *file, const char *path, int flags)
{
	int fd, err = file_enter(r, file);
	bool raised;

	if (err)
		return err;
	raised = identity_raise(false);
	fd = open(path, flags, 0666);
	if (fd < 0)
		fd = -errno;
	identity_lower(raised);
	identity_leave();
	return fd < 0 ? report_errno(fd, "--redirect: %s cannot be opened", path) : fd;
}

static int open_instead(struct rebuild *r, const struct redirect *rule)
{
	const Kcr__File *file = context_file(r->context, rule->id);
	int flags = rebuild_open_flags(file) & ~(O_NOFOLLOW | O_NOATIME);
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	int fd = open_file(r, file, rule->file, flags | (writes ? O_CREAT : 0)), err;

	if (fd < 0)
		return fd;
	err = set_position(fd, file, writes);
	if (err) {
		close(fd);
		return report_errno(err, "--redirect: cannot set the position in %s", rule->file);
	}
	r->borrowed[rule->id - 1] = BORROWED;
	return rebuild_put(r, rule->id, fd);
}

int redirect_open(struct rebuild *r)
{
	int err = 0;

	for (size_t i = 0; i < r->nr_redirects && !err; i++)
		if (r->file_fd[r->redirect[i].id - 1] < 0)
			err = open_instead(r, &r->redirect[i]);
	return err;
}
