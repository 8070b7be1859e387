// SPDX-License-Identifier: GPL-2.0
/* See postponed.h.  The lock keeps the job from being closed while it is read from. */
#include "checkpoint/postponed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "device/device.h"
#include "report/report.h"

/* What an ELSEWHERE section names. */
struct section {
	pid_t pid;
	size_t nr_runs;
	struct kcr_run *runs;
	uint64_t nr_pages;
};

struct postponed {
	pthread_mutex_t lock;
	int job;			/* with the copies; -1: there are none */
	bool kept;			/* it is ours, not the attempt's */
	struct section *section;
	size_t count, capacity;
	uint64_t nr_pages;
};

/* ---- for the caller --------------------------------------------------------------------- */

struct postponed *postponed_new(void)
{
	struct postponed *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->job = -1;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void forget(struct postponed *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->section[i].runs);
	p->count = 0;
	p->nr_pages = 0;
}

void postponed_free(struct postponed *p)
{
	if (!p)
		return;
	if (p->kept)
		close(p->job);
	forget(p);
	free(p->section);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint64_t postponed_pages(const struct postponed *p)
{
	return p->nr_pages;
}

int postponed_read(struct postponed *p, uint64_t number, uint32_t first, uint32_t nr_pages,
		   void *buffer)
{
	struct kcr_run run[CONTEXT_FETCH_PAGES];
	const struct section *s = number < p->count ? &p->section[number] : NULL;
	size_t nr_runs;
	int err;

	if (!s || !nr_pages || nr_pages > CONTEXT_FETCH_PAGES || first >= s->nr_pages ||
	    nr_pages > s->nr_pages - first)
		return -EINVAL;
	nr_runs = context_cut_runs(s->runs, s->nr_runs, first, nr_pages, run);
	pthread_mutex_lock(&p->lock);
	err = p->job < 0 ? -ENODATA : device_read(p->job, s->pid, KCR_PAGES_SNAPSHOT, buffer, run,
						  nr_runs, NULL);
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* ---- for the checkpoint ------------------------------------------------------------------ */

void postponed_begin(const struct checkpoint *c)
{
	struct postponed *p = c->options->postponed;

	if (!p)
		return;
	forget(p);
	p->job = c->attempt.job;
}

void postponed_keep(const struct checkpoint *c)
{
	if (c->options->postponed)
		c->options->postponed->kept = true;
}

bool postponed_end(const struct checkpoint *c)
{
	struct postponed *p = c->options->postponed;

	if (!p || p->kept)
		return p;
	pthread_mutex_lock(&p->lock);
	p->job = -1;
	pthread_mutex_unlock(&p->lock);
	return false;
}

/* Whatever a lazy restart would load at once, at least in part, goes into the image (restart/lazy.h). */
void postponed_choose(const struct checkpoint *c, const Kcr__Mm *mm, struct address_space *space)
{
	for (size_t i = 0; c->options->postponed && i < space->nr_regions; i++) {
		struct region *r = &space->region[i];
		size_t area = r->large ? context_area(mm, r->start) : SIZE_MAX;
		const Kcr__Vma *vma = area == SIZE_MAX ? NULL : mm->vma[area];

		r->elsewhere = vma && vma->flags & KCR_VMA_WRITE && !r->early;
		for (size_t k = 0; r->elsewhere && k < mm->n_guard; k++)
			r->elsewhere = mm->guard[k]->start >= vma->end || mm->guard[k]->end <= vma->start;
	}
}

/* Writes a section, and remembers it.  0 or -errno with a message. */
static int add(struct checkpoint *c, pid_t pid, const struct kcr_scan *found)
{
	const struct kcr_run *runs = (const struct kcr_run *)(uintptr_t)found->runs;
	struct postponed *p = c->options->postponed;
	struct section *s;

	if (p->count == p->capacity) {
		size_t capacity = 2 * p->capacity + 64;

		s = reallocarray(p->section, capacity, sizeof(*s));
		if (!s)
			return report_errno(-ENOMEM, "writing memory");
		p->section = s;
		p->capacity = capacity;
	}
	s = &p->section[p->count];
	*s = (struct section) {
		.pid = pid, .nr_runs = found->count, .nr_pages = found->nr_pages,
		.runs = calloc(found->count, sizeof(*s->runs)),
	};
	if (!s->runs)
		return report_errno(-ENOMEM, "writing memory");
	memcpy(s->runs, runs, found->count * sizeof(*runs));
	p->count++;
	p->nr_pages += found->nr_pages;
	return context_write_elsewhere(c->attempt.writer, pid, runs, found->count);
}

/* All that is present, zero or not: to know, each page would have to be read. */
static int write_region(struct checkpoint *c, pid_t pid, const struct region *r)
{
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct kcr_scan scan = {
		.flags = KCR_SCAN_SNAPSHOT | KCR_SCAN_KEEP_ZERO, .pid = pid, .end = r->end,
		.next = r->start, .max_pages = CONTEXT_CHUNK_PAGES, .runs = (uintptr_t)run,
	};
	int err = 0;

	while (!err && scan.next < r->end) {
		scan.start = scan.next;
		scan.count = CONTEXT_CHUNK_RUNS;
		err = figures_scan(c, &scan);
		if (!err && scan.count)
			err = add(c, pid, &scan);
	}
	return err;
}

int postponed_write(struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	int err = 0;

	for (size_t i = 0; c->options->postponed && i < d->nr_spaces; i++)
		for (size_t k = 0; !err && k < d->space[i].nr_regions; k++)
			if (d->space[i].region[k].elsewhere)
				err = write_region(c, d->space[i].pid, &d->space[i].region[k]);
	return err;
}
