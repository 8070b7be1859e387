// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of the processes, as a source of the page pipeline: finds those to
 * save and gathers them in chunks across mappings; those of large mappings in chunks of their
 * own, as a lazy restart takes a chunk as a whole.  The module reads them, into
 * the file or into a buffer.  Of an increment only those go on that have changed; those that
 * are known not to have been written to (changes.c) are not even read.  Pages that processes
 * have in common come first (family.c), and once; so do others that are equal (duplicates.c).
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "checkpoint/duplicates.h"
#include "checkpoint/family.h"
#include "device/device.h"
#include "image/chooser.h"
#include "image/pages.h"
#include "image/writeback.h"
#include "proc/clock.h"
#include "report/report.h"

/* Pages of one process. */
struct pages {
	size_t nr_runs;
	uint64_t nr_pages;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
};

struct process_pages {
	struct page_source source;
	struct checkpoint *c;
	enum memory_part part;
	bool snapshot;
	size_t space, region;		/* where the search continues */
	bool large;			/* the pages found are of large regions */
	uint64_t address;		/* … 0: at the region's start */
	pid_t pid;			/* whose pages these are */
	struct pages found;		/* by the last search; of these … */
	struct pages unread;		/* … those to be read … */
	struct pages unwritten;		/* … and those that the parent has */
	page_cursor cursor;		/* in the parent's tables */
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
	else if (how == SAVE_PRESENT)
		flags |= KCR_SCAN_KEEP_ZERO;
	return flags;
}

static void next_region(struct process_pages *s)
{
	s->region++;
	s->address = 0;
}

static bool is_full(const struct pages *p)
{
	return p->nr_pages == CONTEXT_CHUNK_PAGES || p->nr_runs == CONTEXT_CHUNK_RUNS;
}

/* Adds what a scan finds from `start` to at most `end`; *next: where it has ended. */
static int scan(struct process_pages *s, pid_t pid, uint32_t flags, uint64_t start, uint64_t end,
		struct pages *out, uint64_t *next)
{
	struct kcr_scan scan = {
		.flags = flags, .pid = pid, .start = start, .end = end,
		.count = CONTEXT_CHUNK_RUNS - out->nr_runs,
		.max_pages = CONTEXT_CHUNK_PAGES - out->nr_pages,
		.runs = (uintptr_t)&out->run[out->nr_runs],
	};
	int err = figures_scan(s->c, &scan);

	if (err)
		return err;
	out->nr_runs += scan.count;
	out->nr_pages += scan.nr_pages;
	*next = scan.next;
	return 0;
}

/* Adds pages of the region to those found; 1: it is enough, 0, or -errno. */
static int scan_region(struct process_pages *s, const struct address_space *space,
		       const struct region *r)
{
	uint32_t flags = scan_flags(s, r->how);
	uint64_t start = s->address ?: r->start, end, before = s->found.nr_pages;
	int err = 0;

	if (changes_known(space, r, start, &end))
		flags |= KCR_SCAN_CHANGES;
	family_leave_out(space, &start, &end);
	s->address = end;
	if (start < end)
		err = scan(s, space->pid, flags, start, end, &s->found, &s->address);
	if (!err)
		err = figures_left_out(s->c, r, &(struct kcr_scan) {
			.flags = flags, .pid = space->pid, .start = start, .end = s->address,
		}, s->found.nr_pages - before);
	if (err)
		return err;
	if (s->address < end)
		return 1;
	if (end == r->end)
		next_region(s);
	return is_full(&s->found);
}

/* Searches the address space; 1: enough was found, 0: no regions are left. */
static int scan_space(struct process_pages *s, const struct address_space *space)
{
	int full = 0;

	while (!full && s->region < space->nr_regions) {
		const struct region *r = &space->region[s->region];

		if (r->early != (s->part == MEMORY_EARLY) || r->elsewhere) {
			next_region(s);
		} else if (s->found.nr_runs && s->large != r->large) {
			full = 1;
		} else {
			s->large = r->large;
			full = scan_region(s, space, r);
		}
	}
	return full;
}

static void add(struct pages *out, uint64_t address, uint64_t nr_pages)
{
	out->run[out->nr_runs++] = (struct kcr_run){ .address = address, .nr_pages = nr_pages };
	out->nr_pages += nr_pages;
}

/* How many of the first pages does the parent have, or not have? */
static uint64_t count_alike(struct process_pages *s, pid_t pid, uint64_t address,
			    uint64_t nr_pages, bool *has)
{
	uint64_t n = increment_span(s->c->increment, &s->cursor, pid, address, nr_pages, has);

	while (n < nr_pages) {
		bool next;
		uint64_t more = increment_span(s->c->increment, &s->cursor, pid,
					       address + n * CONTEXT_PAGE, nr_pages - n, &next);

		if (next != *has)
			break;
		n += more;
	}
	return n;
}

/*
 * Pages that have not been written to.  One that the parent does not have was zero, or was
 * left out, when it was made: it is treated as if it had changed.
 */
static int sort_unchanged(struct process_pages *s, pid_t pid, uint64_t address, uint64_t nr_pages)
{
	uint64_t end = address + nr_pages * CONTEXT_PAGE, next;
	int err = 0;
	bool has;

	while (!err && address < end) {
		next = address + CONTEXT_PAGE *
		       count_alike(s, pid, address, (end - address) / CONTEXT_PAGE, &has);
		if (has)
			add(&s->unwritten, address, (next - address) / CONTEXT_PAGE);
		else
			err = scan(s, pid, scan_flags(s, SAVE_TOUCHED), address, next, &s->unread,
				   &next);
		address = next;
	}
	return err;
}

/* There are no more runs than pages, so there is room for all. */
static int sort(struct process_pages *s, pid_t pid)
{
	int err = 0;

	s->unread.nr_runs = s->unread.nr_pages = 0;
	s->unwritten.nr_runs = s->unwritten.nr_pages = 0;
	for (size_t i = 0; !err && i < s->found.nr_runs; i++) {
		const struct kcr_run *run = &s->found.run[i];

		if (run->address & KCR_RUN_UNCHANGED)
			err = sort_unchanged(s, pid, run->address & ~(uint64_t)KCR_RUN_UNCHANGED,
					     run->nr_pages);
		else
			add(&s->unread, run->address, run->nr_pages);
	}
	s->c->result->left_out.nr_zero += s->found.nr_pages - s->unread.nr_pages -
					  s->unwritten.nr_pages;
	return err;
}

/* The next pages of one process; 1: there are some, 0: there are no more, or -errno. */
static int search(struct process_pages *s, pid_t *pid)
{
	const struct description *d = &s->c->attempt.description;

	s->found.nr_runs = s->found.nr_pages = 0;
	while (!s->found.nr_runs && s->space < d->nr_spaces) {
		const struct address_space *space = &d->space[s->space];
		int full = scan_space(s, space);

		if (full < 0)
			return full;
		*pid = space->pid;
		if (!full) {
			s->space++;
			s->region = 0;
		}
	}
	return s->found.nr_runs > 0;
}

/* Passes pages on, which must stay until the next call, and forgets them. */
static void pass(struct pages *p, struct context_chunk *chunk)
{
	chunk->runs = p->run;
	chunk->nr_runs = p->nr_runs;
	chunk->nr_pages = p->nr_pages;
	p->nr_runs = 0;
}

static int next(struct page_source *source, struct context_chunk *chunk)
{
	struct process_pages *s = process_pages(source);
	int more = 1;

	if (s->part == MEMORY_SHARED)
		return family_next(s->c, s->snapshot, chunk);
	while (more > 0 && !s->unread.nr_runs && !s->unwritten.nr_runs) {
		more = search(s, &s->pid);
		if (more > 0)
			more = sort(s, s->pid) ?: 1;
	}
	if (more <= 0)
		return more;
	chunk->pid = s->pid;
	chunk->unwritten = !s->unread.nr_runs;
	pass(chunk->unwritten ? &s->unwritten : &s->unread, chunk);
	if (!chunk->unwritten)
		chunk->length = chunk->nr_pages * CONTEXT_PAGE;
	return 1;
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
	if (chunk->unwritten)
		return 0;
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

static void progress(void *arg, const struct context_chunk *chunk)
{
	const struct checkpoint_options *o;
	struct checkpoint *c = arg;

	o = c->options;
	c->result->nr_pages += chunk->nr_pages;
	c->attempt.written_bytes += chunk->nr_pages * CONTEXT_PAGE;
	writeback_note(c->attempt.writeback);
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

double memory_target_rate(const struct checkpoint *c)
{
	double cost = c->attempt.chooser ? rate_cost(chooser_rate(c->attempt.chooser)) : 0;

	return cost > 0 ? 1e9 / cost : 0;
}

/*
 * While the processes stand still and are to go on, only the page cache keeps them waiting;
 * else, the disk is waited for in the end, and begins at once.  Where the rate has a limit, adaptive
 * compression has to see that, and not what the disk could do.
 */
static void pace(struct checkpoint *c, bool snapshot)
{
	const struct checkpoint_options *o = c->options;
	bool waits = o->sync && (snapshot || o->signal);
	bool paced = c->attempt.chooser && !o->bandwidth;

	if (c->attempt.chooser)
		rate_pace(chooser_rate(c->attempt.chooser), waits && paced);
	if (waits && !paced)
		c->attempt.writeback = writeback_begin(context_writer_fd(c->attempt.writer));
}

static struct page_sieve *choose_sieve(struct checkpoint *c, enum memory_part part)
{
	if (c->increment)
		return increment_sieve(c->increment);
	return part == MEMORY_REST ? duplicates_sieve(c->attempt.duplicates) : NULL;
}

int memory_write(struct checkpoint *c, enum memory_part part, bool snapshot)
{
	static const struct page_source_ops ops = {
		.concurrent = true, .next = next, .load = load, .send = send,
	};
	struct process_pages *pages;
	struct context_page_sink sink;
	uint64_t start = now_ns();
	int err;

	if (part == MEMORY_SHARED && !c->attempt.family)
		return 0;
	pages = calloc(1, sizeof(*pages));
	if (!pages)
		return report_errno(-ENOMEM, "writing memory");
	pages->source.ops = &ops;
	pages->c = c;
	pages->part = part;
	pages->snapshot = snapshot;
	context_page_sink(&sink, c->attempt.writer);
	pace(c, snapshot);
	err = pages_move(&(struct pages_flow) {
		.source = &pages->source, .sink = &sink.sink, .work = PAGES_ENCODE,
		.compression = c->options->compression, .chooser = c->attempt.chooser,
		.count = c->result->compression, .sieve = choose_sieve(c, part),
		.progress = progress, .progress_arg = c,
	});
	if (!err && part == MEMORY_REST)
		err = duplicates_write(c->attempt.duplicates, c->attempt.writer);
	writeback_end(c->attempt.writeback);
	c->attempt.writeback = NULL;
	c->result->memory_ns += now_ns() - start;
	free(pages);
	return err;
}
