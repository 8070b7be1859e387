// SPDX-License-Identifier: GPL-2.0
/*
 * Tracking of writes, for increments; see changes.h.
 *
 * mremap(2) may move page tables as a whole, without a trace of it in their entries.  But
 * a page keeps its origin, the place of its mapping when it was first touched (KCR_VMAS_ORIGINS).
 * So an unwritten page is the one that the parent has at this address if its origin was
 * that of one mapping only at that time, and that mapping was here.
 */
#include "checkpoint/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"

/* Addresses whose pages had an origin of their own, at the time of the parent. */
struct known_range {
	uint64_t start, end;
	uint64_t shift;			/* origin - address, modulo 2^64 */
};

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

/* ---- pages that have not been moved ---------------------------------------------------- */

static int by_origin(const void *a, const void *b)
{
	const Kcr__Vma *const *x = a, *const *y = b;

	return ((*x)->origin > (*y)->origin) - ((*x)->origin < (*y)->origin);
}

static int by_address(const void *a, const void *b)
{
	const struct known_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static uint64_t origin_end(const Kcr__Vma *v)
{
	return v->origin + (v->end - v->start);
}

/* Keeps the origins that no other mapping has; vma: sorted by origin. */
static void find_ranges(struct changes *changes, const Kcr__Vma *const *vma, size_t count)
{
	uint64_t reached = 0;

	for (size_t i = 0; i < count; i++) {
		const Kcr__Vma *v = vma[i];
		uint64_t from = v->origin > reached ? v->origin : reached, to = origin_end(v);

		reached = to > reached ? to : reached;
		if (i + 1 < count && vma[i + 1]->origin < to)
			to = vma[i + 1]->origin;
		if (from >= to)
			continue;
		changes->range[changes->nr_ranges++] = (struct known_range){
			.start = from - v->origin + v->start, .end = to - v->origin + v->start,
			.shift = v->origin - v->start,
		};
	}
	qsort(changes->range, changes->nr_ranges, sizeof(*changes->range), by_address);
}

/* The process that has this memory, as the parent describes it: its ranges. */
static int describe_parent(struct changes *changes, const Kcr__Process *parent)
{
	const Kcr__Vma **vma;
	size_t count = 0;

	if (!parent || !parent->mm)
		return 0;
	vma = calloc(parent->mm->n_vma + 1, sizeof(*vma));
	changes->range = calloc(parent->mm->n_vma + 1, sizeof(*changes->range));
	if (!vma || !changes->range) {
		free(vma);
		return report_errno(-ENOMEM, "process %d: memory map", parent->pid);
	}
	for (size_t i = 0; i < parent->mm->n_vma; i++) {
		const Kcr__Vma *v = parent->mm->vma[i];

		/* An overflow: it is not from us. */
		if (v->has_origin && origin_end(v) > v->origin)
			vma[count++] = v;
	}
	qsort(vma, count, sizeof(*vma), by_origin);
	find_ranges(changes, vma, count);
	free(vma);
	return 0;
}

/* The first range that ends behind the address, or the number of ranges. */
static size_t find_range(const struct changes *changes, uint64_t address)
{
	size_t low = 0, high = changes->nr_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (changes->range[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool changes_known(const struct address_space *space, const struct region *region, uint64_t start,
		   uint64_t *end)
{
	const struct changes *changes = &space->changes;
	const struct known_range *range;
	size_t found;

	*end = region->end;
	if (!changes->tracked || !region->anonymous)
		return false;
	found = find_range(changes, start);
	if (found == changes->nr_ranges)
		return false;
	range = &changes->range[found];
	if (start < range->start) {
		*end = range->start < *end ? range->start : *end;
		return false;
	}
	*end = range->end < *end ? range->end : *end;
	return range->shift == region->origin - region->start;
}

/* ---- tracking ----------------------------------------------------------------------------- */

static void notice(const struct checkpoint *c, pid_t pid, int err)
{
	if (c->options->changes != CHECKPOINT_DIRTY)
		return;
	report_warn("process %d: all its pages are compared, as it is not known which have been written to: %s",
		    pid, err == -EBUSY ? "a process that is not saved shares its memory" :
		    err == -EOPNOTSUPP ? "the kernel cannot track that, or it has no vdso" :
		    err == -EACCES ? "only root may have them tracked" :
		    "they are tracked from now on, or somebody else clears the soft-dirty bits");
}

static int find_one(struct checkpoint *c, struct address_space *space)
{
	const struct context *parent;
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
	return describe_parent(&space->changes, context_process(parent, space->pid));
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
	free(changes->range);
}
