// SPDX-License-Identifier: GPL-2.0
/*
 * With whose rights each open file is restored.  See resource/identity.h.
 */
#include "resource/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "resource/identity.h"

/* ---- who has it ------------------------------------------------------------------ */

static void add_holder(struct rebuild *r, uint32_t id, const Kcr__Credentials *c)
{
	if (id)
		r->holder[id - 1] = identity_lesser(r->holder[id - 1], c);
}

static void add_process(struct rebuild *r, const Kcr__Process *p)
{
	const Kcr__Mm *mm = p->mm;

	for (size_t i = 0; i < p->n_descriptor; i++)
		add_holder(r, p->descriptor[i]->file_id, p->credentials);
	for (size_t i = 0; mm && i < mm->n_vma; i++)
		add_holder(r, mm->vma[i]->file_id, p->credentials);
	if (mm)
		add_holder(r, mm->exe_file_id, p->credentials);
}

int file_rights_prepare(struct rebuild *r)
{
	const struct context *c = r->context;
	const Kcr__Credentials *least = NULL;

	r->holder = calloc(c->nr_files + 1, sizeof(*r->holder));
	if (!r->holder)
		return report_errno(-ENOMEM, "restoring open files");
	for (size_t i = 0; i < c->nr_processes; i++) {
		add_process(r, c->process[i]);
		least = identity_lesser(least, c->process[i]->credentials);
	}
	/* Files that no process has (in flight, or only watched) get the least of all rights. */
	for (size_t i = 0; i < c->nr_files; i++)
		r->holder[i] = r->holder[i] ?: least;
	return 0;
}

/* ---- what a process was given ------------------------------------------------------ */

static bool is_guarded_address(const struct rebuild *r, const ProtobufCBinaryData *name, bool own)
{
	char path[256] = "";

	if (!name->len || !name->data[0])	/* none, or not a path */
		return true;
	if (!own || name->len >= sizeof(path))
		return false;
	memcpy(path, name->data, name->len);
	return rebuild_is_guarded(r, path);
}

static bool are_guarded_names(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	const Kcr__File *peer = context_file(r->context, u->peer_file_id);

	if (peer && peer->kind_case != KCR__FILE__KIND_UNIX_SOCKET)
		peer = NULL;
	return is_guarded_address(r, &u->name, file->at_path) &&
	       is_guarded_address(r, &u->peer_name, peer && peer->at_path) &&
	       (!peer || is_guarded_address(r, &peer->unix_socket->name, peer->at_path));
}

static bool are_guarded_watches(const struct rebuild *r, const Kcr__Inotify *inotify)
{
	for (size_t i = 0; i < inotify->n_watch; i++)
		if (!rebuild_is_guarded(r, inotify->watch[i]->path))
			return false;
	return true;
}

static bool are_guarded_marks(const struct rebuild *r, const Kcr__Fanotify *fanotify)
{
	for (size_t i = 0; i < fanotify->n_mark; i++)
		if (!rebuild_is_guarded(r, fanotify->mark[i]->path))
			return false;
	return true;
}

/* Named pipes may have several names, and all of them are used (resource/pipe.c). */
static bool are_guarded_pipes(const struct rebuild *r, const Kcr__Pipe *pipe)
{
	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *f = r->context->file[i];

		if (f->kind_case == KCR__FILE__KIND_PIPE && f->pipe->pipe_id == pipe->pipe_id &&
		    f->pipe->fifo_path &&
		    !(f->at_path && rebuild_is_guarded(r, f->pipe->fifo_path)))
			return false;
	}
	return true;
}

/*
 * May the caller's own rights be used for it?  Only if its paths led to it at the
 * checkpoint, unlike those from another mount namespace, and no user can have changed
 * what they refer to.
 */
static bool is_out_of_reach(const struct rebuild *r, const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_REGULAR:	/* checks more itself */
		return file->at_path && !file->regular->deleted;
	case KCR__FILE__KIND_DIRECTORY:
		return file->at_path && rebuild_is_guarded(r, file->directory->path);
	case KCR__FILE__KIND_PIPE:
		return are_guarded_pipes(r, file->pipe);
	case KCR__FILE__KIND_UNIX_SOCKET:
		return are_guarded_names(r, file);
	case KCR__FILE__KIND_INOTIFY:
		return are_guarded_watches(r, file->inotify);
	case KCR__FILE__KIND_FANOTIFY:
		return are_guarded_marks(r, file->fanotify);
	default:		/* without a path */
		return true;
	}
}

/* ---- steps ---------------------------------------------------------------------------- */

int file_enter(const struct rebuild *r, const Kcr__File *file)
{
	return identity_enter(r->holder[file->id - 1]);
}

int file_with_rights(struct rebuild *r, const Kcr__File *file,
		     int (*step)(struct rebuild *r, const Kcr__File *file))
{
	int err = file_enter(r, file);

	if (err)
		return err;
	err = step(r, file);
	identity_leave();
	if ((err != -EACCES && err != -EPERM) || !identity_guard())
		return err;
	if (is_out_of_reach(r, file)) {
		report_clear();
		err = step(r, file);
	}
	identity_unguard();
	return err;
}
