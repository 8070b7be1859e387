// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which open files are restored.  cr_restart opens each of them
 * once, with descriptors above every saved one; the processes forked from it
 * inherit these and duplicate them into their tables.  Helpers of the kinds
 * are in file_helper.c.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rebuild/script.h"
#include "report/report.h"
#include "resource/changed.h"
#include "resource/identity.h"
#include "resource/redirect.h"
#include "resource/socket_filter.h"

#define STATUS_FLAGS	(O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)

/* Descriptors that the other rooms open besides the files. */
#define SPARE_DESCRIPTORS	256

const struct file_kind *file_kind_of(Kcr__File__KindCase tag)
{
	for (const struct file_kind *const *k = file_kinds; *k; k++)
		if ((*k)->kind == tag)
			return *k;
	return NULL;
}

/* ---- opening ------------------------------------------------------------------ */

static int highest_watched(const Kcr__Epoll *epoll)
{
	int highest = 0;

	for (size_t i = 0; i < epoll->n_entry; i++)
		if (epoll->entry[i]->fd > highest)
			highest = epoll->entry[i]->fd;
	return highest;
}

/* The highest descriptor, including those that are closed but still watched. */
static int highest_saved(const struct context *c)
{
	int highest = 63, watched;

	for (size_t i = 0; i < c->nr_processes; i++)
		for (size_t j = 0; j < c->process[i]->n_descriptor; j++)
			if (c->process[i]->descriptor[j]->fd > highest)
				highest = c->process[i]->descriptor[j]->fd;
	for (size_t i = 0; i < c->nr_files; i++) {
		if (c->file[i]->kind_case != KCR__FILE__KIND_EPOLL)
			continue;
		watched = highest_watched(c->file[i]->epoll);
		if (watched > highest)
			highest = watched;
	}
	return highest;
}

/* Is it opened once more, until its contents are stored? */
static bool may_have_contents(const Kcr__File *file)
{
	const struct file_kind *kind = file_kind_of(file->kind_case);

	if (file->kind_case == KCR__FILE__KIND_REGULAR)
		return file->regular->deleted || file->regular->shared_memory;
	return kind && kind->content_size;
}

/* Above the saved descriptors there is one for each file, and those for contents. */
static int raise_limit(const struct context *c, int highest)
{
	rlim_t needed = (rlim_t)highest + c->nr_files + SPARE_DESCRIPTORS;
	struct rlimit limit;

	for (size_t i = 0; i < c->nr_files; i++)
		needed += may_have_contents(c->file[i]) ||
			  c->file[i]->kind_case == KCR__FILE__KIND_USER_FAULT;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return report_errno(-errno, "limit of open files");
	if (limit.rlim_max < needed) {
		struct rlimit wider = { needed, needed };

		if (!identity_may_raise_limits() || setrlimit(RLIMIT_NOFILE, &wider))
			return report_fail(-EMFILE, "%llu open files are needed and the limit is %llu: "
					   "raise it (ulimit -Hn)", (unsigned long long)needed,
					   (unsigned long long)limit.rlim_max);
	} else if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			return report_errno(-errno, "limit of open files");
	}
	return 0;
}

static int *new_descriptors(size_t count)
{
	int *fd = malloc((count + 1) * sizeof(*fd));

	for (size_t i = 0; fd && i < count; i++)
		fd[i] = -1;
	return fd;
}

static int prepare(struct rebuild *r)
{
	const struct context *c = r->context;

	for (int i = 0; i < 3; i++)
		r->stdio[i] = -1;
	r->dead_pidfd = -1;
	if (!r->file_fd)
		r->file_fd = new_descriptors(c->nr_files);
	if (!r->content_fd)
		r->content_fd = new_descriptors(c->nr_files);
	r->borrowed = calloc(c->nr_files + 1, sizeof(*r->borrowed));
	r->giver_fd = new_descriptors(c->nr_files);
	if (!r->file_fd || !r->content_fd || !r->borrowed || !r->giver_fd)
		return report_errno(-ENOMEM, "restoring open files");
	if (file_rights_prepare(r))
		return -ENOMEM;
	r->high_fd = highest_saved(c) + 1;
	for (int i = 0; i < 3; i++) {
		r->stdio[i] = fcntl(i, F_DUPFD_CLOEXEC, r->high_fd);
		if (r->stdio[i] < 0 && errno != EBADF)
			return report_errno(-errno, "restoring open files");
	}
	return 0;
}

/* What comes before any file is opened. */
static int begin(struct rebuild *r)
{
	int err = raise_limit(r->context, highest_saved(r->context));

	if (!err)
		err = prepare(r);
	return err ? err : redirect_resolve(r);
}

int files_open(struct rebuild *r)
{
	const struct context *c = r->context;
	int err = begin(r);

	if (!err && r->strict_files)
		err = changed_files(r);
	if (!err)
		err = redirect_open(r);
	for (size_t i = 0; i < c->nr_files && !err; i++) {
		const struct file_kind *kind = file_kind_of(c->file[i]->kind_case);

		if (r->file_fd[i] >= 0 || c->file[i]->kind_case == KCR__FILE__KIND_CLOSED)
			continue;
		if (!kind)
			return rebuild_error(c->file[i], -EOPNOTSUPP, "this version cannot");
		err = file_with_rights(r, c->file[i], kind->open);
	}
	if (!err && !r->strict_files)
		err = changed_files(r);
	return err;
}

int files_check(struct rebuild *r)
{
	const struct context *c = r->context;
	int err = begin(r);

	for (size_t i = 0; i < c->nr_files && !err; i++) {
		const struct file_kind *kind = file_kind_of(c->file[i]->kind_case);

		if (kind && kind->check && !redirect_has(r, c->file[i]->id))
			err = file_with_rights(r, c->file[i], kind->check);
	}
	return err ? err : changed_files(r);
}

int files_content(struct rebuild *r, const struct context_item *item)
{
	const Kcr__File *file = context_file(r->context, item->file_id);
	int err;

	if (!file || r->content_fd[item->file_id - 1] < 0)
		return report_fail(-EINVAL, "the context file has contents for a file that takes none");
	err = file_enter(r, file);
	if (err)
		return err;
	err = file_store_content(r->content_fd[item->file_id - 1], item->offset, item->data,
				 item->length);
	identity_leave();
	return err ? rebuild_error(file, err, "cannot write its contents") : 0;
}

/* ---- completing ---------------------------------------------------------------- */

/* Without permission for O_NOATIME the file goes on without: another user had opened it. */
static int set_status(int fd, int flags)
{
	int ret = fcntl(fd, F_SETFL, flags);

	if (ret && errno == EPERM && flags & O_NOATIME)
		ret = fcntl(fd, F_SETFL, flags & ~O_NOATIME);
	return ret;
}

/* Signals of a description that is also the caller's would come to the caller's programs, too. */
static int complete_borrowed(const struct rebuild *r, const Kcr__File *file)
{
	enum borrowed borrowed = r->borrowed[file->id - 1];

	if (borrowed == REOPENED && file->has_owner_signal)
		fcntl(r->file_fd[file->id - 1], F_SETSIG, file->owner_signal);
	if (borrowed == BORROWED && file->flags & O_ASYNC)
		report_warn("%s is cr_restart's now, and gives no signals (O_ASYNC) any more",
			    file->description ?: "an open file");
	return 0;
}

static int complete_status(struct rebuild *r, const Kcr__File *file)
{
	int fd = r->file_fd[file->id - 1], flags = fcntl(fd, F_GETFL);

	if (r->borrowed[file->id - 1])
		return complete_borrowed(r, file);
	if (flags < 0)
		return rebuild_error(file, -errno, "descriptor %d", fd);
	if ((flags ^ file->flags) & STATUS_FLAGS && set_status(fd, file->flags & STATUS_FLAGS))
		return rebuild_error(file, -errno, "cannot set its flags");
	if (file->has_position && lseek(fd, file->position, SEEK_SET) < 0)
		return rebuild_error(file, -errno, "cannot set its position");
	if (file->has_owner_signal && fcntl(fd, F_SETSIG, file->owner_signal))
		return rebuild_error(file, -errno, "cannot set its signal");
	return locks_rebuild(r, fd, file) ?: socket_filter_rebuild(r, file);
}

/* An epoll polls the files that it watches: epolls come after all others. */
static int complete_kinds(struct rebuild *r, bool epolls)
{
	const struct context *c = r->context;
	int err = 0;

	for (size_t i = 0; i < c->nr_files && !err; i++) {
		const struct file_kind *kind = file_kind_of(c->file[i]->kind_case);

		if (kind && kind->complete &&
		    (c->file[i]->kind_case == KCR__FILE__KIND_EPOLL) == epolls)
			err = file_with_rights(r, c->file[i], kind->complete);
	}
	return err;
}

static int deliver(struct rebuild *r, bool concludes)
{
	const struct context *c = r->context;
	int err = 0;

	for (size_t i = 0; i < c->nr_files && !err; i++) {
		const struct file_kind *kind = file_kind_of(c->file[i]->kind_case);

		if (kind && !concludes && kind->deliver)
			err = file_with_rights(r, c->file[i], kind->deliver);
		if (kind && concludes && kind->conclude)
			err = file_with_rights(r, c->file[i], kind->conclude);
	}
	return err;
}

int files_complete(struct rebuild *r)
{
	const struct context *c = r->context;
	int err = complete_kinds(r, false);

	if (!err)
		err = complete_kinds(r, true);
	if (!err)
		err = deliver(r, false);
	if (!err)
		err = deliver(r, true);
	for (size_t i = 0; i < c->nr_files && !err; i++) {
		if (r->content_fd[i] >= 0)
			close(r->content_fd[i]);
		r->content_fd[i] = -1;
		if (r->file_fd[i] >= 0 && !(c->file[i]->flags & O_PATH))
			err = file_with_rights(r, c->file[i], complete_status);
	}
	return err;
}

void files_close(struct rebuild *r)
{
	for (size_t i = 0; r->file_fd && i < r->context->nr_files; i++) {
		const struct file_kind *kind = file_kind_of(r->context->file[i]->kind_case);

		if (kind && kind->finish && r->file_fd[i] >= 0 &&
		    !file_enter(r, r->context->file[i])) {
			kind->finish(r, r->context->file[i]);
			identity_leave();
		}
		if (r->file_fd[i] >= 0)
			close(r->file_fd[i]);
		if (r->content_fd && r->content_fd[i] >= 0)
			close(r->content_fd[i]);
		if (r->giver_fd && r->giver_fd[i] >= 0)
			close(r->giver_fd[i]);
	}
	for (int i = 0; r->borrowed && i < 3; i++) {
		if (r->stdio[i] >= 0)
			close(r->stdio[i]);
		r->stdio[i] = -1;
	}
	if (r->borrowed && r->dead_pidfd >= 0)
		close(r->dead_pidfd);
	free(r->file_fd);
	free(r->content_fd);
	free(r->borrowed);
	free(r->giver_fd);
	free(r->holder);
	r->giver_fd = NULL;
	r->holder = NULL;
	r->file_fd = NULL;
	r->content_fd = NULL;
	r->borrowed = NULL;
}

/* ---- in a process -------------------------------------------------------------- */

static int compare_descriptors(const void *a, const void *b)
{
	const Kcr__Descriptor *const *p = a, *const *q = b;

	return ((*p)->fd > (*q)->fd) - ((*p)->fd < (*q)->fd);
}

/* Moves our own descriptors above the saved ones. */
static int move_job(struct rebuild *r)
{
	int fd;

	if (r->job < 0 || r->job >= r->high_fd)
		return 0;
	fd = fcntl(r->job, F_DUPFD_CLOEXEC, r->high_fd);
	if (fd < 0)
		return report_errno(-errno, "restoring the table of open files");
	close(r->job);
	r->job = fd;
	return 0;
}

static int install_table(struct rebuild *r, Kcr__Descriptor *const *table, size_t count)
{
	unsigned int next = 0;		/* all descriptors below are done */

	for (size_t i = 0; i < count; i++) {
		const Kcr__Descriptor *d = table[i];
		int from = r->file_fd[d->file_id - 1];

		if (from < 0)
			continue;	/* restored as closed */
		if ((unsigned int)d->fd > next)
			close_range(next, d->fd - 1, 0);
		if (dup3(from, d->fd, d->has_cloexec && d->cloexec ? O_CLOEXEC : 0) < 0)
			return report_errno(-errno, "cannot restore descriptor %d", d->fd);
		next = d->fd + 1;
	}
	if (next < (unsigned int)r->high_fd)
		close_range(next, r->high_fd - 1, 0);
	return 0;
}

/* Who sets it has to be allowed to send signals to whoever gets them, whenever they come. */
static int set_owner(const Kcr__Process *process, int number, pid_t owner)
{
	int err = identity_show(process->credentials);

	if (!err && fcntl(number, F_SETOWN, owner))
		err = -errno;
	identity_show_own();
	return err;
}

/*
 * The owner may be a process that does not exist yet, so each process tries; failure is
 * only an error in the owner itself.
 */
static int install_owner(struct rebuild *r, const Kcr__Process *process, int number,
			 const Kcr__File *file)
{
	pid_t owner = 0;
	int flags, err;

	if (file->has_owner && file->owner && !file->owner_thread) {
		owner = file->owner < 0 ? rebuild_group(r, -file->owner) :
					  rebuild_pid(r, file->owner);
		err = owner ? set_owner(process, number, file->owner < 0 ? -owner : owner) : 0;
		if (err && file->owner == process->pid)
			return rebuild_error(file, err, "cannot set the owner of its signals");
	}
	if (file->flags & O_ASYNC && r->borrowed[file->id - 1] != BORROWED) {
		flags = fcntl(number, F_GETFL);
		/* A terminal that has come back hung up has none to give. */
		if ((flags < 0 || fcntl(number, F_SETFL, flags | O_ASYNC)) &&
		    r->borrowed[file->id - 1] != REOPENED)
			return rebuild_error(file, -errno, "cannot switch its signals on");
	}
	return 0;
}

/*
 * An epoll watches the file behind the descriptor at the time it is added, and other
 * kinds replace that file: epolls come after all others.
 */
static int install_kinds(struct rebuild *r, const Kcr__Process *process,
			 Kcr__Descriptor *const *table, size_t count, bool epolls)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const Kcr__File *file = context_file(r->context, table[i]->file_id);
		const struct file_kind *kind = file_kind_of(file->kind_case);

		if (r->file_fd[file->id - 1] < 0 ||
		    (file->kind_case == KCR__FILE__KIND_EPOLL) != epolls)
			continue;
		if (kind && kind->install)
			err = kind->install(r, process, table[i]->fd, file);
		if (!err)
			err = locks_install(process, table[i]->fd, file);
		if (!err && (file->has_owner || file->flags & O_ASYNC) && !(file->flags & O_PATH))
			err = install_owner(r, process, table[i]->fd, file);
	}
	return err;
}

int files_install(struct rebuild *r, const Kcr__Process *process)
{
	size_t count = process->n_descriptor;
	Kcr__Descriptor **table = malloc((count + 1) * sizeof(*table));
	int err;

	if (!table)
		return report_errno(-ENOMEM, "restoring the table of open files");
	if (count)
		memcpy(table, process->descriptor, count * sizeof(*table));
	qsort(table, count, sizeof(*table), compare_descriptors);
	err = move_job(r);
	if (!err)
		err = user_faults_make(r, process);
	if (!err)
		err = install_table(r, table, count);
	if (!err)
		err = install_kinds(r, process, table, count, false);
	if (!err)
		err = install_kinds(r, process, table, count, true);
	free(table);
	return err;
}

static bool has_thread(const Kcr__Process *process, pid_t tid)
{
	for (size_t i = 0; i < process->n_thread; i++)
		if (process->thread[i]->tid == tid)
			return true;
	return false;
}

/* The new ID of a thread of this process; 0: another process's, or it has got another ID. */
static pid_t own_thread(const struct rebuild *r, const Kcr__Process *process, pid_t tid)
{
	if (tid == process->pid)
		return rebuild_pid(r, tid);
	return r->restore_ids && has_thread(process, tid) ? tid : 0;
}

/* A thread that gets the signals of a file descriptor exists only now. */
static void owners_script(const struct rebuild *r, const Kcr__Process *process,
			  struct script *s)
{
	for (size_t i = 0; i < process->n_descriptor; i++) {
		const Kcr__Descriptor *d = process->descriptor[i];
		const Kcr__File *file = context_file(r->context, d->file_id);
		struct f_owner_ex owner = { .type = F_OWNER_TID };

		if (r->file_fd[d->file_id - 1] < 0 || !file->owner_thread)
			continue;
		owner.pid = own_thread(r, process, file->owner);
		if (owner.pid)
			script_call(s, "fcntl(F_SETOWN_EX)", SYS_fcntl, d->fd, F_SETOWN_EX,
				    script_data(s, &owner, sizeof(owner)), 0, 0, 0);
		else if (has_thread(process, file->owner))
			report_warn("process %d, descriptor %d: its signals (F_SETOWN_EX) went to thread "
				    "%d, which has another ID now, and go to nobody", process->pid,
				    d->fd, file->owner);
	}
}

void files_script(struct rebuild *r, const Kcr__Process *process, struct script *s)
{
	owners_script(r, process, s);
	locks_script(process, s);
}
