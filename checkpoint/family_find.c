// SPDX-License-Identifier: GPL-2.0
/*
 * Works through mappings that several processes have at overlapping addresses, a window of one
 * chunk at a time.  Of each page the largest group that has it in common is taken; its first
 * process is the owner, which the chunk is named after.  See family.h.
 */
#include "checkpoint/family.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/family_chunk.h"
#include "checkpoint/internal.h"
#include "proc/proc.h"
#include "report/report.h"

#define MAX_GROUPS	8	/* of one page that are told apart */
#define MAX_PLACES	8192	/* that overlap; each needs 10 KiB */
#define MAX_BYTES	(1ull << 40)	/* of all places together: a restart has them twice */

/* Entries of /proc/PID/pagemap: Documentation/admin-guide/mm/pagemap.rst. */
#define ENTRY_PRESENT	(1ull << 63)
#define ENTRY_FILE	(1ull << 61)
#define ENTRY_EXCLUSIVE	(1ull << 56)
#define ENTRY_FRAME	((1ull << 55) - 1)	/* 0: the caller may not know */

/* A mapping, or what is saved of it, that may have common pages. */
struct place {
	const struct region *region;
	size_t space;
};

/* Places that overlap, and a window of them. */
struct window {
	struct checkpoint *c;
	const struct place *place;
	size_t count;
	uint64_t base;
	uint64_t *used;			/* of each place: the first page from there on */
	uint64_t (*entry)[WINDOW];	/* of each place: frames, 1: unknown, 0: not common */
	uint16_t (*owner)[WINDOW];	/* of each place: whose page it has, counted from 1; or 0 */
	bool certain;
};

/* ---- which pages ---------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->region->kind != y->region->kind)
		return x->region->kind < y->region->kind ? -1 : 1;
	if (x->region->start != y->region->start)
		return x->region->start < y->region->start ? -1 : 1;
	return (x->space > y->space) - (x->space < y->space);
}

static struct place *find_places(const struct description *d, size_t *count)
{
	struct place *all;
	size_t room = 0, n = 0;

	for (size_t i = 0; i < d->nr_spaces; i++)
		room += d->space[i].nr_regions;
	all = malloc((room + 1) * sizeof(*all));
	for (size_t i = 0; all && i < d->nr_spaces; i++)
		for (size_t k = 0; k < d->space[i].nr_regions; k++)
			if (d->space[i].region[k].common)
				all[n++] = (struct place){ &d->space[i].region[k], i };
	if (all)
		qsort(all, n, sizeof(*all), compare_places);
	*count = n;
	return all;
}

/* How many from here on are of one kind and overlap?  *length: of all together. */
static size_t count_overlapping(const struct place *p, size_t count, uint64_t *length)
{
	uint64_t end = p->region->end;
	size_t n = 1;

	while (n < count && p[n].region->kind == p->region->kind && p[n].region->start < end) {
		end = p[n].region->end > end ? p[n].region->end : end;
		n++;
	}
	*length = end - p->region->start;
	return n;
}

/* Reads the entries of a place from page `first` of the window up to `last`; how many. */
static size_t read_pagemap(const struct window *w, size_t i, size_t first, size_t last,
			   uint64_t *entry)
{
	const struct description *d = &w->c->attempt.description;
	pid_t thread = scope_thread(&w->c->attempt.scope, d->space[w->place[i].space].pid);
	uint64_t size = sizeof(*entry);
	int fd = proc_open(thread, "pagemap", O_RDONLY);
	ssize_t got;

	if (fd < 0)
		return 0;
	got = pread(fd, &entry[first], (last - first) * size,
		    (w->base / CONTEXT_PAGE + first) * size);
	close(fd);
	return got < 0 ? 0 : got / size;
}

/* The common pages of one place in the window; what can't be read is its own. */
static void read_entries(struct window *w, size_t i, uint64_t entry[WINDOW])
{
	const struct region *r = w->place[i].region;
	uint64_t from = r->start > w->base ? r->start : w->base, to = w->base + WINDOW_BYTES;
	size_t first, last;

	memset(entry, 0, WINDOW * sizeof(*entry));
	to = r->end < to ? r->end : to;
	if (from >= to)
		return;
	first = (from - w->base) / CONTEXT_PAGE;
	last = first + read_pagemap(w, i, first, (to - w->base) / CONTEXT_PAGE, entry);
	for (size_t k = first; k < WINDOW; k++) {
		bool common = k < last && (entry[k] & (ENTRY_PRESENT | ENTRY_FILE | ENTRY_EXCLUSIVE)) ==
					  ENTRY_PRESENT;

		entry[k] = common ? entry[k] & ENTRY_FRAME ?: 1 : 0;
		w->certain &= entry[k] != 1;
	}
}

/*
 * Forgets pages that the kernel has moved while the entries of all places were read: another
 * page may have been in their frames since.
 */
static void drop_moved(struct window *w, size_t i)
{
	uint64_t entry[WINDOW];

	read_entries(w, i, entry);
	for (size_t k = 0; k < WINDOW; k++)
		if (w->entry[i][k] != entry[k])
			w->entry[i][k] = 0;
}

/* Finds out who has page k in common with whom, in the largest group. */
static void group_page(struct window *w, size_t k)
{
	size_t first[MAX_GROUPS], size[MAX_GROUPS], groups = 0, best = 0;

	for (size_t i = 0; i < w->count; i++) {
		size_t g = 0;

		w->owner[i][k] = 0;
		while (g < groups && w->entry[first[g]][k] != w->entry[i][k])
			g++;
		if (!w->entry[i][k] || g == MAX_GROUPS)
			continue;
		if (g == groups) {
			first[groups] = i;
			size[groups++] = 0;
		}
		if (++size[g] > size[best])
			best = g;
	}
	for (size_t i = 0; groups && size[best] > 1 && i < w->count; i++)
		if (w->entry[i][k] == w->entry[first[best]][k])
			w->owner[i][k] = first[best] + 1;
}

/* Has place i a page in this window that is the owner's? */
static bool has_page_of(const struct window *w, size_t i, size_t owner)
{
	for (size_t k = 0; k < WINDOW; k++)
		if (w->owner[i][k] == owner + 1)
			return true;
	return false;
}

/* The share of a process, which may have several places there; NULL: no memory. */
static struct share *share_of(struct family_chunk *chunk, size_t space)
{
	struct share *larger;

	for (size_t i = 0; i < chunk->nr_shares; i++)
		if (chunk->share[i].space == space)
			return &chunk->share[i];
	larger = reallocarray(chunk->share, chunk->nr_shares + 1, sizeof(*larger));
	if (!larger)
		return NULL;
	chunk->share = larger;
	larger += chunk->nr_shares++;
	*larger = (struct share){ .space = space };
	return larger;
}

static int add_share(struct family_chunk *chunk, const struct window *w, size_t i, size_t owner)
{
	struct share *share = share_of(chunk, w->place[i].space);

	if (!share)
		return -ENOMEM;
	for (size_t k = 0; k < WINDOW; k++)
		share->page[k] |= w->owner[i][k] == owner + 1;
	return 0;
}

static int add_chunk(struct family *f, const struct window *w, size_t owner)
{
	struct family_chunk *larger = reallocarray(f->chunk, f->nr_chunks + 1, sizeof(*larger));
	int err = 0;

	if (!larger)
		return -ENOMEM;
	f->chunk = larger;
	larger += f->nr_chunks++;
	*larger = (struct family_chunk){ .base = w->base, .certain = w->certain };
	/* The owner has pages of its own here, and is the first of those that have them. */
	for (size_t i = owner; !err && i < w->count; i++)
		if (has_page_of(w, i, owner))
			err = add_share(larger, w, i, owner);
	return err;
}

static int find_in_window(struct family *f, struct window *w)
{
	int err = 0;

	w->certain = true;
	for (size_t i = 0; i < w->count; i++)
		read_entries(w, i, w->entry[i]);
	for (size_t i = 0; i < w->count; i++)
		drop_moved(w, i);
	for (size_t k = 0; k < WINDOW; k++)
		group_page(w, k);
	for (size_t i = 0; !err && i < w->count; i++)
		if (has_page_of(w, i, i))
			err = add_chunk(f, w, i);
	return err;
}

/* The first page of place i that is present and not zero, from w->base on. */
static int find_used(struct window *w, size_t i)
{
	const struct description *d = &w->c->attempt.description;
	const struct region *r = w->place[i].region;
	struct kcr_run run = { 0 };
	struct kcr_scan scan = {
		.pid = d->space[w->place[i].space].pid, .end = r->end, .count = 1, .max_pages = 1,
		.start = r->start > w->base ? r->start : w->base, .runs = (uintptr_t)&run,
	};

	w->used[i] = UINT64_MAX;
	while (scan.start < r->end) {
		int err = figures_scan(w->c, &scan);

		if (err)
			return err;
		if (scan.count) {
			w->used[i] = run.address;
			break;
		}
		scan.start = scan.next;
		scan.count = 1;
	}
	return 0;
}

/* Moves the window to the next page that somebody has: 1, 0: there is none, or -errno. */
static int advance(struct window *w)
{
	uint64_t next = UINT64_MAX;
	int err = 0;

	for (size_t i = 0; !err && i < w->count; i++) {
		if (w->used[i] < w->base)
			err = find_used(w, i);
		next = w->used[i] < next ? w->used[i] : next;
	}
	w->base = next;
	return err ? err : next != UINT64_MAX;
}

static int find_among(struct family *f, struct checkpoint *c, const struct place *place,
		      size_t count)
{
	struct window w = { .c = c, .place = place, .count = count, .base = 1 };
	int more = 0;

	w.used = calloc(count, sizeof(*w.used));
	w.entry = calloc(count, sizeof(*w.entry));
	w.owner = calloc(count, sizeof(*w.owner));
	if (!w.used || !w.entry || !w.owner)
		more = report_errno(-ENOMEM, "the pages that processes have in common");
	else
		more = advance(&w);
	while (more > 0) {
		more = find_in_window(f, &w);
		w.base += WINDOW_BYTES;
		if (!more)
			more = advance(&w);
	}
	free(w.used);
	free(w.entry);
	free(w.owner);
	return more;
}

int family_find(struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	struct family *f;
	struct place *all;
	uint64_t length, left = MAX_BYTES;
	size_t count, n;
	int err = 0;

	if (!c->options->dedup || d->nr_spaces < 2)
		return 0;
	f = calloc(1, sizeof(*f));
	all = find_places(d, &count);
	if (!f || !all)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < count; i += n) {
		n = count_overlapping(&all[i], count - i, &length);
		if (n == 1 || n > MAX_PLACES || length > left)
			continue;
		left -= length;
		err = find_among(f, c, &all[i], n);
	}
	free(all);
	if (!err && f->nr_chunks) {
		c->attempt.family = f;
		return 0;
	}
	family_free(f);
	return err ? report_errno(err, "the pages that processes have in common") : 0;
}
