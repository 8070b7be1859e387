// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of the processes, as a source of the page pipeline: finds those to
 * save and gathers them in chunks across mappings.  The module reads them, into
 * the file or into a buffer.  Of an increment only those go on that have changed.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"
#include "image/pages.h"
#include "report/report.h"

struct process_pages {
	struct page_source source;
	struct checkpoint *c;
	bool early;			/* the early regions, or all others */
	bool snapshot;
	size_t space, region;		/* where the search continues */
	uint64_t address;		/* … 0: at the region's start */
	size_t nr_runs;
	uint64_t nr_pages;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
};

static struct process_pages *process_pages(struct page_source *source)
{
	return (struct process_pages *)source;
}

static uint32_t scan_flags(const struct process_pages *s, enum save_pages how)
{
	uint32_t flags = s->snapshot ? KCR_SCAN_SNAPSHOT : 0;

	if (how == SAVE_COPIED)
		flags |= KCR_SCAN_PRIVATE | KCR_SCAN_KEEP_ZERO;
	else if (how == SAVE_ALL)
		flags |= KCR_SCAN_ALL | KCR_SCAN_KEEP_ZERO;
	return flags;
}

static void next_region(struct process_pages *s)
{
	s->region++;
	s->address = 0;
}

/* Adds pages of the region to the chunk; 1: the chunk is full, 0, or -errno. */
static int scan_region(struct process_pages *s, pid_t pid, const struct region *r)
{
	struct kcr_scan scan = {
		.flags = scan_flags(s, r->how), .pid = pid,
		.start = s->address ?: r->start, .end = r->end,
		.count = CONTEXT_CHUNK_RUNS - s->nr_runs,
		.max_pages = CONTEXT_CHUNK_PAGES - s->nr_pages,
		.runs = (uintptr_t)&s->run[s->nr_runs],
	};
	int err = device_scan(s->c->attempt.job, &scan);

	if (err)
		return err;
	s->nr_runs += scan.count;
	s->nr_pages += scan.nr_pages;
	s->address = scan.next;
	if (scan.next < r->end)
		return 1;
	next_region(s);
	return s->nr_pages == CONTEXT_CHUNK_PAGES || s->nr_runs == CONTEXT_CHUNK_RUNS;
}

/* Fills the chunk from the address space; 1: it is full, 0: no regions are left. */
static int scan_space(struct process_pages *s, const struct address_space *space)
{
	int full = 0;

	while (!full && s->region < space->nr_regions) {
		const struct region *r = &space->region[s->region];

		if (r->early == s->early)
			full = scan_region(s, space->pid, r);
		else
			next_region(s);
	}
	return full;
}

static int next(struct page_source *source, struct context_chunk *chunk)
{
	struct process_pages *s = process_pages(source);
	const struct description *d = &s->c->attempt.description;

	s->nr_runs = s->nr_pages = 0;
	while (!s->nr_runs && s->space < d->nr_spaces) {
		const struct address_space *space = &d->space[s->space];
		int full = scan_space(s, space);

		if (full < 0)
			return full;
		chunk->pid = space->pid;
		if (!full) {
			s->space++;
			s->region = 0;
		}
	}
	chunk->runs = s->run;
	chunk->nr_runs = s->nr_runs;
	chunk->nr_pages = s->nr_pages;
	chunk->length = s->nr_pages * CONTEXT_PAGE;
	return s->nr_runs > 0;
}

static uint32_t page_flags(const struct process_pages *s)
{
	return s->snapshot ? KCR_PAGES_SNAPSHOT : 0;
}

static int load(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		uint64_t *sum)
{
	struct process_pages *s = process_pages(source);

	(void)sum;
	return device_read(s->c->attempt.job, chunk->pid, page_flags(s), buffer, chunk->runs,
			   chunk->nr_runs, NULL);
}

static int send(struct page_source *source, const struct context_chunk *chunk, int fd,
		uint64_t *sum)
{
	struct process_pages *s = process_pages(source);

	return device_write(s->c->attempt.job, chunk->pid, page_flags(s), fd, chunk->runs,
			    chunk->nr_runs, sum);
}

static void progress(void *arg, uint64_t nr_pages)
{
	const struct checkpoint_options *o;
	struct checkpoint *c = arg;

	o = c->options;
	c->result->nr_pages += nr_pages;
	c->attempt.written_bytes += nr_pages * CONTEXT_PAGE;
	if (o->progress)
		o->progress(o->progress_arg, c->attempt.written_bytes, c->expected_bytes);
}

bool memory_has_early(const struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;

	for (size_t i = 0; i < d->nr_spaces; i++)
		for (size_t k = 0; k < d->space[i].nr_regions; k++)
			if (d->space[i].region[k].early)
				return true;
	return false;
}

int memory_write(struct checkpoint *c, bool early, bool snapshot)
{
	static const struct page_source_ops ops = { .next = next, .load = load, .send = send };
	struct process_pages *pages = calloc(1, sizeof(*pages));
	struct context_page_sink sink;
	int err;

	if (!pages)
		return report_errno(-ENOMEM, "writing memory");
	pages->source.ops = &ops;
	pages->c = c;
	pages->early = early;
	pages->snapshot = snapshot;
	context_page_sink(&sink, c->attempt.writer);
	err = pages_move(&(struct pages_flow) {
		.source = &pages->source, .sink = &sink.sink, .work = PAGES_ENCODE,
		.compression = c->options->compression, .sieve = increment_sieve(c->increment),
		.progress = progress, .progress_arg = c,
	});
	free(pages);
	return err;
}
