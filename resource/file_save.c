// SPDX-License-Identifier: GPL-2.0
/*
 * Saving the files of the register: each by its kind (file_kinds), and
 * what all kinds have in common; a file of no known kind is refused or, if the
 * caller wants it, restored as closed.
 */
#include "resource/file_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/socket_names.h"

int file_unsupported(struct file_table *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->reason, sizeof(t->reason), format, args);
	va_end(args);
	t->instead = NULL;
	return -EOPNOTSUPP;
}

static void name_place(const struct file_probe *p, char *text, size_t size)
{
	if (p->passed)
		snprintf(text, size, "process %d, a descriptor in flight to it", p->pid);
	else if (p->number >= 0)
		snprintf(text, size, "process %d, descriptor %d", p->pid, p->number);
	else
		snprintf(text, size, "process %d, mapped file", p->pid);
}

int file_too_many(pid_t pid)
{
	return report_fail(-EMFILE, "process %d has more open files than this program may: raise "
			   "the limit (ulimit -n)", pid);
}

int file_save_error(const struct file_probe *probe, int err, const char *format, ...)
{
	char place[64], what[256];
	va_list args;

	if (err == -EMFILE)
		return file_too_many(probe->pid);
	name_place(probe, place, sizeof(place));
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return report_errno(err, "%s (%s): %s", place, probe->link ?: "?", what);
}

static int save_unsupported(struct file_table *t, struct entry *e)
{
	const char *advice = t->instead ?: "--skip-unsupported restores it as closed";
	const struct file_probe *p = &e->probe;
	char place[64];

	name_place(p, place, sizeof(place));
	if (!t->skip_unsupported || p->mapped || t->instead)
		return report_fail(-EOPNOTSUPP, "%s is %s (%s), which cannot be saved%s%s", place,
				   t->reason, p->link, p->mapped ? "" : "; ",
				   p->mapped ? "" : advice);
	kcr__file__free_unpacked(e->file, NULL);
	e->file = malloc(sizeof(*e->file));
	if (!e->file)
		return report_errno(-ENOMEM, "saving open files");
	kcr__file__init(e->file);
	e->file->flags = p->flags;
	e->file->kind_case = KCR__FILE__KIND_CLOSED;
	e->file->closed = file_string(t->reason);
	return e->file->closed ? 0 : -ENOMEM;
}

/* Without F_NOTIFY or a delegation a folder has no use for an owner; what it asked for is not told. */
static void warn_of_notices(const struct file_probe *p)
{
	char place[64];

	name_place(p, place, sizeof(place));
	report_warn("%s: signals of changes in %s (F_NOTIFY) do not come any more after a restart",
		    place, p->link);
}

/* What all kinds have: position, owner for signals, locks. */
static int save_common(struct file_table *t, struct entry *e)
{
	const struct file_probe *p = &e->probe;
	Kcr__File *file = e->file;
	struct f_owner_ex owner;
	char text[4400];
	off_t position;
	int sig;

	if ((S_ISREG(p->st.st_mode) || S_ISDIR(p->st.st_mode)) && !(p->flags & O_PATH)) {
		position = lseek(p->fd, 0, SEEK_CUR);
		if (position > 0) {
			file->has_position = true;
			file->position = position;
		}
	}
	if (p->number >= 0 && !(p->flags & O_PATH) && !fcntl(p->fd, F_GETOWN_EX, &owner) &&
	    owner.pid) {
		file->has_owner = true;
		file->owner = owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
		file->has_owner_thread = file->owner_thread = owner.type == F_OWNER_TID;
		if (S_ISDIR(p->st.st_mode) && !file_table_is_dry(t) && !lease_is_delegated(p->fd))
			warn_of_notices(p);
	}
	if (p->number >= 0 && !(p->flags & O_PATH)) {
		sig = fcntl(p->fd, F_GETSIG);
		if (sig > 0) {
			file->has_owner_signal = true;
			file->owner_signal = sig;
		}
	}
	if (!(p->flags & O_PATH))
		lease_save(t, p, file);
	if (probe_is_at_path(p))
		file->has_at_path = file->at_path = true;
	snprintf(text, sizeof(text), "%s %s", e->kind->name, p->link);
	file->description = file_string(text);
	if (!file->description)
		return -ENOMEM;
	return locks_parse(p->fdinfo, p->pid, p->number, file, &t->locks);
}

static int refuse_unknown(struct file_table *t, const struct file_probe *p)
{
	int family;
	socklen_t length = sizeof(family);

	if (!S_ISSOCK(p->st.st_mode) ||
	    getsockopt(p->fd, SOL_SOCKET, SO_DOMAIN, &family, &length))
		return file_unsupported(t, "a kernel object of this kind");
	return socket_refuse_family(t, family);
}

static void find_kind(struct entry *e)
{
	for (const struct file_kind *const *k = file_kinds; *k && !e->kind; k++)
		if ((*k)->match(&e->probe))
			e->kind = *k;
}

/* What a kind finishes in each process that has the file cannot be done for one in flight. */
static bool can_be_passed(const struct entry *e)
{
	const bool ends_in_proc = !strncmp(e->probe.link, "/proc/", 6);

	return !e->kind->install || e->kind == &file_kind_terminal ||
	       ((e->kind == &file_kind_regular || e->kind == &file_kind_directory) &&
		!ends_in_proc);
}

static int save_by_kind(struct file_table *t, struct entry *e)
{
	int err = e->kind->save(t, &e->probe, e->file);

	if (!err && e->kind->content_size && e->kind->content_size(&e->probe, e->file) &&
	    !file_content_is_readable(t, &e->probe))
		return file_unsupported(t, "a file to be saved with its contents, which the process "
					"may not read");
	return err;
}

static int save_one(struct file_table *t, uint32_t id)
{
	struct entry *e = t->entry[id - 1];
	int err;

	if (e->file)
		kcr__file__free_unpacked(e->file, NULL);
	e->file = malloc(sizeof(*e->file));
	if (!e->file)
		return report_errno(-ENOMEM, "saving open files");
	kcr__file__init(e->file);
	e->file->id = id;
	e->file->flags = e->probe.flags;
	find_kind(e);
	if (e->kind && e->probe.passed && !can_be_passed(e))
		err = file_unsupported(t, "an object of kind %s", e->kind->name);
	else if (e->kind)
		err = save_by_kind(t, e);
	else
		err = refuse_unknown(t, &e->probe);
	if (err == -EOPNOTSUPP) {
		err = save_unsupported(t, e);
		if (!err)
			e->file->id = id;
		e->kind = NULL;
		return err;
	}
	return err ? report_errno(err, "process %d, descriptor %d (%s)", e->probe.pid,
				  e->probe.number, e->probe.link) : save_common(t, e);
}

static int collect_one(struct file_table *t, uint32_t id)
{
	struct entry *e = t->entry[id - 1];

	find_kind(e);
	return e->kind && e->kind->collect ? e->kind->collect(t, &e->probe) : 0;
}

static int leave_out_one(struct file_table *t, uint32_t id)
{
	struct entry *e = t->entry[id - 1];

	return e->kind && e->kind->leave_out ? e->kind->leave_out(t, &e->probe, e->file) : 0;
}

/*
 * Some kinds take data out and put it back, or set an option for a moment: a signal that ends
 * us must wait until they have done so.
 */
static int each_undisturbed(struct file_table *t, int (*step)(struct file_table *t, uint32_t id))
{
	sigset_t all, before;
	int err = 0;

	sigfillset(&all);
	for (size_t i = 0; i < t->count && !err; i++) {
		sigprocmask(SIG_SETMASK, &all, &before);
		err = step(t, i + 1);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	return err;
}

int file_table_save(struct file_table *t)
{
	/* Those that are found come behind the others, and may lead to more. */
	int err = each_undisturbed(t, collect_one);

	if (!err)
		err = each_undisturbed(t, save_one);
	if (!err && t->skip_unsupported)
		err = each_undisturbed(t, leave_out_one);
	return err;
}

int file_table_check(struct file_table *t, int (*failed)(void *arg, int err), void *arg)
{
	int err = 0;

	t->dry = true;
	for (size_t i = 0; i < t->count && !err; i++) {
		err = save_one(t, i + 1);
		if (err && failed)
			err = failed(arg, err);
	}
	t->dry = false;
	return err;
}

uint64_t file_table_content_bytes(const struct file_table *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct entry *e = t->entry[i];

		if (e->kind && e->file && e->kind->content_size)
			sum += e->kind->content_size(&e->probe, e->file);
	}
	return sum;
}

int file_table_write_contents(struct file_table *t, struct context_writer *w)
{
	int err = 0;

	for (size_t i = 0; i < t->count && !err; i++) {
		const struct entry *e = t->entry[i];

		if (e->kind && e->kind->content_size &&
		    e->kind->content_size(&e->probe, e->file))
			err = file_write_content(&e->probe, e->file, w);
	}
	return err;
}

int file_table_posix_locks(const struct file_table *t, Kcr__Process *p)
{
	return locks_of_process(&t->locks, p);
}

/* Does a process with this file have such a thread?  owners_script() asks no other. */
static bool has_thread(const Kcr__Process *p, const Kcr__File *file)
{
	bool found = false;

	for (size_t i = 0; i < p->n_thread && !found; i++)
		found = p->thread[i]->tid == file->owner && process_has_number(p, file->id, -1);
	return found;
}

static bool is_owner(const Kcr__Process *p, const Kcr__File *file)
{
	if (file->owner_thread)
		return has_thread(p, file);
	return file->owner < 0 ? p->pgid == -file->owner : p->pid == file->owner;
}

void owners_warn(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct file_probe *p = &t->entry[i]->probe;
		const Kcr__File *file = t->entry[i]->file;
		bool saved = !file->has_owner || S_ISDIR(p->st.st_mode);	/* warn_of_notices() */
		char place[64];

		for (size_t k = 0; k < count && !saved; k++)
			saved = is_owner(process[k], file);
		if (saved)
			continue;
		name_place(p, place, sizeof(place));
		report_warn("%s: its signals (F_SETOWN) go to %s %d, which is not saved%s: they do not "
			    "come any more after a restart", place, file->owner_thread ? "thread" :
			    file->owner < 0 ? "process group" : "process", abs(file->owner),
			    file->owner_thread ? " or does not have the file" : "");
	}
}
