// SPDX-License-Identifier: GPL-2.0
/*
 * See deferred.h.  A reader of chunks reads one file at a time, back and forth: most of those that
 * follow each other are of one file, and a chain may have hundreds.
 */
#include "image/deferred.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

#define LEAST_BYTES	(2 * CONTEXT_CHUNK_BYTES)

struct file {
	int fd;
	uint64_t base;			/* where it begins there */
	char *name;
};

/* A run of pages of a process; sorted by PID and address. */
struct span {
	int32_t pid;
	uint32_t chunk;
	uint64_t start, end;
};

struct deferred {
	struct elsewhere *elsewhere;	/* NULL: nothing is there */
	size_t nr_files;
	struct file file[CONTEXT_MAX_ANCESTORS + 1];
	struct deferred_chunk *chunk;
	size_t count, capacity;
	struct span *span;
	size_t nr_spans;
};

struct deferred_reader {
	const struct deferred *deferred;
	const struct file *file;
	struct context_reader *reader;	/* of `file`, or NULL */
};

bool deferred_suits(uint64_t vma_flags, uint64_t length)
{
	return length >= LEAST_BYTES && !(vma_flags & (KCR_VMA_LOCKED | KCR_VMA_LOCKONFAULT)) &&
	       context_may_share(vma_flags, 0);
}

static int add_file(struct deferred *d, int fd, uint64_t base, const char *name)
{
	struct file *file = &d->file[d->nr_files++];

	file->base = base;
	file->fd = dup(fd);
	if (file->fd < 0)
		return report_errno(-errno, "%s", name);
	file->name = strdup(name);
	return file->name ? 0 : report_errno(-ENOMEM, "%s", name);
}

int deferred_new(struct deferred **out, const struct context_reader *last, const char *name,
		 const struct chain *chain, struct elsewhere *elsewhere)
{
	struct deferred *d = calloc(1, sizeof(*d));
	int err = 0;

	if (!d)
		return report_errno(-ENOMEM, "%s", name);
	d->elsewhere = elsewhere;
	for (size_t i = 0; !err && chain && i < chain->count; i++)
		err = add_file(d, chain->member[i].fd, 0, chain->member[i].path);
	if (!err)
		err = add_file(d, context_reader_fd(last), context_reader_base(last), name);
	if (err)
		deferred_free(d);
	else
		*out = d;
	return err;
}

void deferred_free(struct deferred *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_files; i++) {
		if (d->file[i].fd >= 0)
			close(d->file[i].fd);
		free(d->file[i].name);
	}
	for (size_t i = 0; i < d->count; i++)
		free(d->chunk[i].runs);
	free(d->chunk);
	free(d->span);
	free(d);
}

/* ---- which there are ----------------------------------------------------------------- */

static int add_chunk(struct deferred *d, const struct deferred_chunk *model,
		     const struct kcr_run *runs, size_t nr_runs)
{
	struct deferred_chunk *one;

	if (d->count == d->capacity) {
		size_t capacity = 2 * d->capacity + 64;

		one = reallocarray(d->chunk, capacity, sizeof(*one));
		if (!one)
			return -ENOMEM;
		d->chunk = one;
		d->capacity = capacity;
	}
	one = &d->chunk[d->count];
	*one = *model;
	one->nr_runs = nr_runs;
	one->runs = calloc(nr_runs, sizeof(*one->runs));
	if (!one->runs)
		return -ENOMEM;
	memcpy(one->runs, runs, nr_runs * sizeof(*one->runs));
	for (size_t i = 0; i < one->nr_runs; i++)
		one->nr_pages += one->runs[i].nr_pages;
	d->nr_spans += one->nr_runs;
	d->count++;
	return 0;
}

int deferred_add(struct deferred *d, const struct context_chunk *chunk)
{
	struct deferred_chunk model = {
		.pid = chunk->pid, .member = chunk->member, .position = chunk->position,
		.sequence = chunk->sequence, .elsewhere = chunk->elsewhere, .number = chunk->number,
	};
	struct kcr_run run[CONTEXT_FETCH_PAGES];
	int err = 0;

	if (!chunk->elsewhere)
		return add_chunk(d, &model, chunk->needed, chunk->nr_needed_runs);
	for (uint64_t first = 0; !err && first < chunk->nr_pages; first += CONTEXT_FETCH_PAGES) {
		model.first = (uint32_t)first;
		err = add_chunk(d, &model, run, context_cut_runs(chunk->runs, chunk->nr_runs, first,
								 CONTEXT_FETCH_PAGES, run));
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct span *s = a, *t = b;

	if (s->pid != t->pid)
		return s->pid < t->pid ? -1 : 1;
	return s->start < t->start ? -1 : s->start > t->start;
}

int deferred_finish(struct deferred *d)
{
	size_t n = 0;

	d->span = calloc(d->nr_spans + 1, sizeof(*d->span));
	if (!d->span)
		return -ENOMEM;
	for (size_t i = 0; i < d->count; i++)
		for (size_t k = 0; k < d->chunk[i].nr_runs; k++) {
			const struct kcr_run *run = &d->chunk[i].runs[k];

			d->span[n++] = (struct span){
				.pid = d->chunk[i].pid, .chunk = (uint32_t)i, .start = run->address,
				.end = run->address + run->nr_pages * CONTEXT_PAGE,
			};
		}
	qsort(d->span, n, sizeof(*d->span), compare);
	return 0;
}

bool deferred_is_partial(const struct deferred *d)
{
	return d->elsewhere;
}

int deferred_try(const struct deferred *d)
{
	char page[CONTEXT_PAGE];

	for (size_t i = 0; i < d->count; i++)
		if (d->chunk[i].elsewhere)
			return d->elsewhere->fetch(d->elsewhere, d->chunk[i].number, d->chunk[i].first, 1,
						   page);
	return 0;
}

void deferred_end(const struct deferred *d, bool loaded)
{
	if (d->elsewhere)
		d->elsewhere->end(d->elsewhere, loaded);
}

size_t deferred_count(const struct deferred *d)
{
	return d->count;
}

const struct deferred_chunk *deferred_at(const struct deferred *d, size_t index)
{
	return &d->chunk[index];
}

size_t deferred_find(const struct deferred *d, int32_t pid, uint64_t address)
{
	size_t low = 0, high = d->nr_spans;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct span *s = &d->span[middle];

		if (s->pid < pid || (s->pid == pid && s->end <= address))
			low = middle + 1;
		else if (s->pid > pid || s->start > address)
			high = middle;
		else
			return s->chunk;
	}
	return SIZE_MAX;
}

/* ---- reading -------------------------------------------------------------------------- */

struct deferred_reader *deferred_reader_new(const struct deferred *d)
{
	struct deferred_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->deferred = d;
	return r;
}

void deferred_reader_free(struct deferred_reader *r)
{
	if (!r)
		return;
	context_reader_free(r->reader);
	free(r);
}

static int use_file(struct deferred_reader *r, const struct file *file)
{
	int err;

	if (r->reader && r->file == file)
		return 0;
	context_reader_free(r->reader);
	r->reader = NULL;
	err = context_reader_new_at(&r->reader, file->fd, file->base, file->name);
	r->file = file;
	return err;
}

/*
 * Moves the pages that are needed, of those of the section, to the front.  False: one is not
 * there.
 */
static bool keep_needed(const struct deferred_chunk *chunk, const struct context_item *item,
			char *pages)
{
	const struct kcr_run *run = item->runs, *end = run + item->nr_runs;
	char *to = pages;

	for (size_t k = 0; k < chunk->nr_runs; k++) {
		uint64_t address = chunk->runs[k].address, left = chunk->runs[k].nr_pages;

		for (uint64_t n; left; left -= n, address += n * CONTEXT_PAGE) {
			while (run < end && run->address + run->nr_pages * CONTEXT_PAGE <= address)
				pages += run++->nr_pages * CONTEXT_PAGE;
			if (run == end || run->address > address)
				return false;
			n = run->nr_pages - (address - run->address) / CONTEXT_PAGE;
			n = n < left ? n : left;
			memmove(to, pages + (address - run->address), n * CONTEXT_PAGE);
			to += n * CONTEXT_PAGE;
		}
	}
	return true;
}

int deferred_load(struct deferred_reader *r, const struct deferred_chunk *chunk, void *buffer)
{
	struct elsewhere *elsewhere = r->deferred->elsewhere;
	struct context_item item;
	int err;

	if (chunk->elsewhere)
		return elsewhere->fetch(elsewhere, chunk->number, chunk->first, (uint32_t)chunk->nr_pages,
					buffer);
	err = use_file(r, &r->deferred->file[chunk->member]);

	if (!err)
		err = context_reader_return(r->reader, chunk->position, chunk->sequence);
	if (err)
		return err;
	err = context_read(r->reader, &item);
	if (err < 0)
		return err;
	if (!err || item.type != CONTEXT_MEMORY || item.pid != chunk->pid)
		return context_memory_damaged(r->reader, chunk->position, "another section is there");
	err = context_memory_read(r->reader, buffer);
	if (!err && !keep_needed(chunk, &item, buffer))
		err = context_memory_damaged(r->reader, chunk->position, "pages are missing");
	return err;
}
