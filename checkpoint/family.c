// SPDX-License-Identifier: GPL-2.0
/*
 * Passes on, chunk by chunk, what family_find.c has found, without pages that are zero or
 * were not common after all.  See family.h.
 */
#include "checkpoint/family.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/family_chunk.h"
#include "checkpoint/internal.h"
#include "device/device.h"
#include "report/report.h"

void family_free(struct family *f)
{
	for (size_t i = 0; f && i < f->nr_chunks; i++) {
		struct family_chunk *chunk = &f->chunk[i];

		for (size_t k = 0; chunk->sharer && k + 1 < chunk->nr_shares; k++)
			free((void *)chunk->sharer[k].runs);
		free(chunk->sharer);
		free(chunk->runs);
		free(chunk->share);
	}
	if (f) {
		free(f->chunk);
		free(f->ours);
		free(f->theirs);
	}
	free(f);
}

static pid_t pid_of(const struct checkpoint *c, const struct share *share)
{
	return c->attempt.description.space[share->space].pid;
}

/* The runs of pages, malloc()ed: their number, or -ENOMEM. */
static ssize_t make_runs(const struct share *share, uint64_t base, struct kcr_run **out)
{
	struct kcr_run run[WINDOW / 2 + 1];
	size_t n = 0;

	for (size_t k = 0; k < WINDOW; k++) {
		if (!share->page[k])
			continue;
		if (!k || !share->page[k - 1])
			run[n++] = (struct kcr_run){ .address = base + k * CONTEXT_PAGE };
		run[n - 1].nr_pages++;
	}
	*out = malloc((n + 1) * sizeof(run[0]));
	if (!*out)
		return -ENOMEM;
	memcpy(*out, run, n * sizeof(run[0]));
	return n;
}

/* The end of the owner's last page in the chunk. */
static uint64_t end_of(const struct family_chunk *chunk)
{
	size_t n = WINDOW;

	while (n && !chunk->share->page[n - 1])
		n--;
	return chunk->base + n * CONTEXT_PAGE;
}

/* Marks pages of the owner, from `start` to `end` in one of its mappings, that are not zero. */
static int find_nonzero(struct checkpoint *c, bool snapshot, const struct family_chunk *chunk,
			uint64_t start, uint64_t end, bool *found)
{
	struct kcr_run run[WINDOW];
	struct kcr_scan scan = { .next = start };
	int err = 0;

	while (!err && scan.next < end) {
		scan = (struct kcr_scan) {
			.flags = snapshot ? KCR_SCAN_SNAPSHOT : 0, .pid = pid_of(c, chunk->share),
			.start = scan.next, .end = end, .count = WINDOW, .max_pages = WINDOW,
			.runs = (uintptr_t)run,
		};
		err = figures_scan(c, &scan);
		for (size_t i = 0; !err && i < scan.count; i++)
			for (uint64_t k = 0; k < run[i].nr_pages; k++)
				found[(run[i].address - chunk->base) / CONTEXT_PAGE + k] = true;
	}
	return err;
}

/* Leaves out pages that are zero: they are in no image. */
static int drop_zero(struct checkpoint *c, bool snapshot, struct family_chunk *chunk)
{
	const struct address_space *space = &c->attempt.description.space[chunk->share->space];
	uint64_t base = chunk->base, end = end_of(chunk);
	bool found[WINDOW] = { false };
	int err = 0;

	for (size_t i = 0; !err && i < space->nr_regions; i++) {
		const struct region *r = &space->region[i];

		if (r->common && r->start < end && r->end > base)
			err = find_nonzero(c, snapshot, chunk, r->start > base ? r->start : base,
					   r->end < end ? r->end : end, found);
	}
	for (size_t i = 0; i < chunk->nr_shares; i++)
		for (size_t k = 0; k < WINDOW; k++)
			chunk->share[i].page[k] &= found[k];
	return err;
}

/* Reads the pages of a process to where they belong in a window. */
static int read_pages(struct checkpoint *c, bool snapshot, const struct share *share, uint64_t base,
		      char *to)
{
	struct kcr_run *runs;
	ssize_t n = make_runs(share, base, &runs);
	int err = n < 0 ? report_errno(n, "comparing pages") : 0;

	for (ssize_t i = 0; !err && i < n; i++)
		err = device_read(c->attempt.job, pid_of(c, share), snapshot ? KCR_PAGES_SNAPSHOT : 0,
				  to + (runs[i].address - base), &runs[i], 1, NULL);
	if (n >= 0)
		free(runs);
	return err;
}

/* Leaves out pages that differ from the owner's. */
static int drop_different(struct checkpoint *c, bool snapshot, struct family_chunk *chunk)
{
	struct family *f = c->attempt.family;
	int err;

	if (!f->ours)
		f->ours = malloc(CONTEXT_CHUNK_BYTES);
	if (!f->theirs)
		f->theirs = malloc(CONTEXT_CHUNK_BYTES);
	if (!f->ours || !f->theirs)
		return report_errno(-ENOMEM, "comparing pages");
	err = read_pages(c, snapshot, chunk->share, chunk->base, f->ours);
	for (size_t i = 1; !err && i < chunk->nr_shares; i++) {
		bool *page = chunk->share[i].page;

		err = read_pages(c, snapshot, &chunk->share[i], chunk->base, f->theirs);
		for (size_t k = 0; !err && k < WINDOW; k++)
			page[k] &= !memcmp(f->ours + k * CONTEXT_PAGE, f->theirs + k * CONTEXT_PAGE,
					   CONTEXT_PAGE);
	}
	return err;
}

/* Leaves out what nobody shares. */
static void drop_unshared(struct family_chunk *chunk)
{
	for (size_t k = 0; k < WINDOW; k++) {
		bool shared = false;

		for (size_t i = 1; i < chunk->nr_shares; i++)
			shared |= chunk->share[i].page[k];
		chunk->share->page[k] &= shared;
	}
}

/* These pages of the address space need not be searched for. */
static int note(struct address_space *space, const struct kcr_run *runs, size_t count)
{
	struct kcr_run *larger;

	if (!count)
		return 0;
	larger = reallocarray(space->shared, space->nr_shared + count, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	memcpy(larger + space->nr_shared, runs, count * sizeof(*runs));
	space->shared = larger;
	space->nr_shared += count;
	return 0;
}

static int compare_sharers(const void *a, const void *b)
{
	const struct context_sharer *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static uint64_t count_pages(const struct kcr_run *runs, size_t count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += runs[i].nr_pages;
	return n;
}

static int list_sharer(struct checkpoint *c, struct family_chunk *chunk, const struct share *share,
		       struct context_chunk *out)
{
	struct kcr_run *runs;
	ssize_t n = make_runs(share, chunk->base, &runs);
	int err;

	if (n < 0)
		return n;
	if (!n) {
		free(runs);
		return 0;
	}
	chunk->sharer[out->nr_sharers++] = (struct context_sharer) {
		.pid = pid_of(c, share), .runs = runs, .nr_runs = n,
	};
	err = note(&c->attempt.description.space[share->space], runs, n);
	if (!err)
		c->result->nr_shared += count_pages(runs, n);
	return err;
}

/* What is left of the chunk in the form in which it is stored. */
static int list_chunk(struct checkpoint *c, struct family_chunk *chunk, struct context_chunk *out)
{
	ssize_t n = make_runs(chunk->share, chunk->base, &chunk->runs);
	int err = n < 0 ? (int)n : note(&c->attempt.description.space[chunk->share->space],
					chunk->runs, n);

	chunk->sharer = calloc(chunk->nr_shares, sizeof(*chunk->sharer));
	if (!err && !chunk->sharer)
		err = -ENOMEM;
	for (size_t i = 1; !err && i < chunk->nr_shares; i++)
		err = list_sharer(c, chunk, &chunk->share[i], out);
	if (err)
		return err;
	qsort(chunk->sharer, out->nr_sharers, sizeof(*chunk->sharer), compare_sharers);
	out->pid = pid_of(c, chunk->share);
	out->runs = chunk->runs;
	out->nr_runs = n;
	out->nr_pages = count_pages(chunk->runs, n);
	out->length = out->nr_pages * CONTEXT_PAGE;
	out->sharer = chunk->sharer;
	return 0;
}

static int compare_runs(const void *a, const void *b)
{
	const struct kcr_run *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void sort_noted(struct description *d)
{
	for (size_t i = 0; i < d->nr_spaces; i++)
		if (d->space[i].nr_shared)
			qsort(d->space[i].shared, d->space[i].nr_shared, sizeof(struct kcr_run),
			      compare_runs);
}

int family_next(struct checkpoint *c, bool snapshot, struct context_chunk *chunk)
{
	struct family *f = c->attempt.family;

	while (f->at < f->nr_chunks) {
		struct family_chunk *next = &f->chunk[f->at++];
		int err = drop_zero(c, snapshot, next);

		if (!err && !next->certain)
			err = drop_different(c, snapshot, next);
		if (err)
			return err;
		drop_unshared(next);
		err = list_chunk(c, next, chunk);
		if (err)
			return report_errno(err, "the pages that processes have in common");
		if (chunk->nr_sharers)
			return 1;
	}
	sort_noted(&c->attempt.description);
	return 0;
}

void family_leave_out(const struct address_space *space, uint64_t *start, uint64_t *end)
{
	size_t low = 0, high = space->nr_shared;

	while (low < high) {		/* the first run that ends after *start */
		size_t middle = low + (high - low) / 2;
		const struct kcr_run *run = &space->shared[middle];

		if (run->address + run->nr_pages * CONTEXT_PAGE <= *start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < space->nr_shared && space->shared[low].address <= *start; low++)
		*start = space->shared[low].address + space->shared[low].nr_pages * CONTEXT_PAGE;
	if (low < space->nr_shared && space->shared[low].address < *end)
		*end = space->shared[low].address;
	if (*start > *end)
		*start = *end;
}
