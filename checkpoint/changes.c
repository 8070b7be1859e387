// SPDX-License-Identifier: GPL-2.0
#include "checkpoint/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"

bool changes_wanted(const struct checkpoint *c)
{
	return c->increment && c->options->changes != CHECKPOINT_HASH &&
	       c->attempt.info.features & KCR_FEATURE_TRACK;
}

/* Will the programs go on, so that there may be another increment? */
static bool go_on(const struct checkpoint *c)
{
	return !c->options->signal || c->options->signal == SIGSTOP;
}

static void notice(const struct checkpoint *c, pid_t pid, int err)
{
	if (c->options->changes != CHECKPOINT_DIRTY)
		return;
	report_warn("process %d: all its pages are compared, as it is not known which have been "
		    "written to: %s", pid, err == -EBUSY ? "a process that is not saved shares its memory" :
		    err == -EOPNOTSUPP ? "the kernel cannot track that, or it has no vdso" :
		    err == -EACCES ? "only root may have them tracked" :
		    "they are tracked from now on, or somebody else clears the soft-dirty bits");
}

static int find_one(struct checkpoint *c, struct address_space *space)
{
	const struct context *parent;
	const Kcr__Process *process;
	uint64_t id = 0;
	int err;

	parent = increment_parent(c->increment, &id);
	err = device_track(c->attempt.job, space->pid, id, KCR_TRACK_TEST);
	space->changes.trackable = !err || err == -ENODATA;
	if (err && (parent || err != -ENODATA))
		notice(c, space->pid, err);
	if (err || !parent)
		return 0;
	space->changes.tracked = true;
	process = context_process(parent, space->pid);
	err = origins_find(&space->changes.origins, process ? process->mm : NULL);
	return err ? report_errno(err, "process %d: memory map", space->pid) : 0;
}

int changes_find(struct checkpoint *c)
{
	struct description *d = &c->attempt.description;
	int err = 0;

	if (changes_wanted(c))
		for (size_t i = 0; !err && i < d->nr_spaces; i++)
			err = find_one(c, &d->space[i]);
	else if (c->increment && c->options->changes == CHECKPOINT_DIRTY)
		notice(c, c->options->target, -EOPNOTSUPP);
	return err;
}

/* Clears the soft-dirty bits through an open /proc/PID/clear_refs. */
static int clear(struct checkpoint *c, pid_t pid, int fd)
{
	if (fd < 0 || write(fd, "4", 1) != 1)
		return -EACCES;
	return device_track(c->attempt.job, pid, context_writer_id(c->attempt.writer), 0);
}

static int track_one(struct checkpoint *c, const struct address_space *space)
{
	pid_t thread = scope_thread(&c->attempt.scope, space->pid);
	uint64_t id = 0;
	int fd, err;

	increment_parent(c->increment, &id);
	/* Before the test: a process that is still there then is the one that was opened. */
	fd = go_on(c) ? proc_open(thread, "clear_refs", O_WRONLY) : -1;
	err = device_track(c->attempt.job, space->pid, id, KCR_TRACK_TEST);
	if (err == -ENODATA && space->changes.tracked) {
		err = report_fail(-EAGAIN, "process %d: somebody has cleared its soft-dirty bits during "
				  "the checkpoint", space->pid);
	} else if ((!err || err == -ENODATA) && go_on(c)) {
		err = clear(c, space->pid, fd);
		if (err)
			notice(c, space->pid, err);
		err = 0;
	} else {
		err = 0;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

int changes_track(struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	int err = 0;

	for (size_t i = 0; !err && i < d->nr_spaces; i++)
		if (d->space[i].changes.trackable)
			err = track_one(c, &d->space[i]);
	return err;
}

void changes_free(struct changes *changes)
{
	origins_free(&changes->origins);
}

bool changes_known(const struct address_space *space, const struct region *region,
		   uint64_t start, uint64_t *end)
{
	*end = region->end;
	return space->changes.tracked && region->anonymous &&
	       origins_same(&space->changes.origins, start,
			    region->origin + (start - region->start), end);
}
