// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of a chain.  The last file is read once, from front to end (so it may come
 * through a pipe), and its tables say which pages the older ones have to give: each
 * page is read and stored once, whatever the length of the chain.  The older files are
 * skimmed: chunks of which nothing is needed are jumped over, and those that are needed
 * as they are go the direct way; so do those whose other pages come once more, from files
 * that are read later.  Where few pages of a chunk are needed, they are read alone, and the
 * sieve verifies each by its hash.  Other chunks, and those that are compressed, are read
 * whole, and the sieve takes what is needed.
 */
#include "image/chain.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "report/report.h"

/* Single pages are read if it is less than one in so many: a call for each costs, too. */
#define FEW	2u

struct chain_pages {
	struct page_source source;
	struct page_sieve sieve;
	const struct chain *chain;
	struct context_page_source file;	/* that is being read */
	struct context_reader *opened;		/* its reader, if it is an older one */
	struct page_map *map;
	unsigned int member;			/* its number; at first that of the last file */
	bool first;				/* it is the last file */
	bool defers;				/* chunks may be left where they are */
	bool direct;				/* this chunk may be taken with all its pages */
	size_t nr_parts;			/* what is read of a chunk of which few are */
	struct kcr_run part[CONTEXT_CHUNK_RUNS];
	size_t offset[CONTEXT_CHUNK_RUNS];	/* of each, in bytes of the chunk */
	page_cursor cursor;
	uint64_t given;				/* pages of this file */
};

static struct chain_pages *of_source(struct page_source *source)
{
	return (struct chain_pages *)source;
}

static const struct page_source_ops *file_ops(const struct chain_pages *p)
{
	return p->file.source.ops;
}

/* ---- one file after the other ------------------------------------------------------- */

/* Has the file given all that the tables place there? */
static int check_given(const struct chain_pages *p)
{
	uint64_t owned = page_map_owned(p->map, p->member);

	if (p->given == owned)
		return 0;
	return report_fail(-EINVAL, "%s: damaged context file: it has %llu of %llu pages that are needed",
			   p->first ? p->chain->name : p->chain->member[p->member].path,
			   (unsigned long long)p->given, (unsigned long long)owned);
}

/* 1, 0: it was the last one, or -errno. */
static int next_file(struct chain_pages *p)
{
	const struct chain_member *m;
	int err = p->first ? page_map_finish(p->map, p->chain->name) : 0;

	if (!err)
		err = check_given(p);
	if (err)
		return err;
	context_reader_free(p->opened);
	p->opened = NULL;
	p->member = p->first ? 0 : p->member + 1;
	p->first = false;
	p->given = 0;
	if (p->member >= p->chain->count)
		return 0;
	m = &p->chain->member[p->member];
	if (lseek(m->fd, 0, SEEK_SET) < 0)
		return report_errno(-errno, "%s", m->path);
	err = context_reader_new(&p->opened, m->fd, m->path);
	if (err)
		return err;
	context_reader_skim(p->opened, CONTEXT_SKIM_PAGES);
	context_page_source(&p->file, p->opened);
	return 1;
}

/* ---- the pages that are needed ------------------------------------------------------- */

struct tally {
	uint64_t needed;
	uint64_t superseded;		/* a file that is read later has the page */
};

/*
 * How many pages, of nr_pages from this one on, are in the tables or not: *owner: the numbers of the
 * files that give them; NULL: none does.
 */
static uint64_t owners_of(struct chain_pages *p, int32_t pid, uint64_t address, uint64_t nr_pages,
			  const uint16_t **owner)
{
	size_t page;
	uint64_t n = page_map_span(p->map, &p->cursor, pid, address, nr_pages, &page);

	*owner = page == SIZE_MAX ? NULL : page_map_owners(p->map, page);
	return n;
}

static void tally_run(struct chain_pages *p, int32_t pid, const struct kcr_run *run, struct tally *tally)
{
	const uint16_t *owner;

	for (uint64_t k = 0, n; k < run->nr_pages; k += n) {
		n = owners_of(p, pid, run->address + k * CONTEXT_PAGE, run->nr_pages - k, &owner);
		for (uint64_t i = 0; owner && i < n; i++) {
			tally->needed += owner[i] == p->member;
			tally->superseded += owner[i] > p->member && owner[i] < p->chain->count;
		}
	}
}

static struct tally tally_chunk(struct chain_pages *p, const struct context_chunk *chunk)
{
	struct tally tally = { 0 };

	if (p->first) {
		tally.needed = chunk->nr_pages;
		return tally;
	}
	for (size_t i = 0; i < chunk->nr_runs; i++)
		tally_run(p, chunk->pid, &chunk->runs[i], &tally);
	return tally;
}

/* Adds a page, at `offset` in the chunk, to what is read of it. */
static void add_part(struct chain_pages *p, uint64_t address, size_t offset)
{
	struct kcr_run *last = p->nr_parts ? &p->part[p->nr_parts - 1] : NULL;

	if (last && last->address + last->nr_pages * CONTEXT_PAGE == address &&
	    p->offset[p->nr_parts - 1] + last->nr_pages * CONTEXT_PAGE == offset) {
		last->nr_pages++;
		return;
	}
	p->part[p->nr_parts] = (struct kcr_run){ .address = address, .nr_pages = 1 };
	p->offset[p->nr_parts++] = offset;
}

/* Adds the needed pages of a run, which begins at `offset` in the chunk. */
static void add_needed(struct chain_pages *p, int32_t pid, const struct kcr_run *run, size_t offset)
{
	const uint16_t *owner;

	for (uint64_t k = 0, n; k < run->nr_pages; k += n) {
		n = owners_of(p, pid, run->address + k * CONTEXT_PAGE, run->nr_pages - k, &owner);
		for (uint64_t i = k; owner && i < k + n; i++)
			if (owner[i - k] == p->member)
				add_part(p, run->address + i * CONTEXT_PAGE, offset + i * CONTEXT_PAGE);
	}
}

/* Finds the needed pages of a chunk of an older file. */
static void find_needed(struct chain_pages *p, struct context_chunk *chunk)
{
	size_t offset = 0;

	p->nr_parts = 0;
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		add_needed(p, chunk->pid, &chunk->runs[i], offset);
		offset += chunk->runs[i].nr_pages * CONTEXT_PAGE;
	}
	chunk->needed = p->part;
	chunk->nr_needed_runs = p->nr_parts;
}

/* Makes a chunk of raw pages one of the needed ones only. */
static void pick(struct chain_pages *p, struct context_chunk *chunk, uint64_t needed)
{
	chunk->runs = chunk->needed;
	chunk->nr_runs = chunk->nr_needed_runs;
	chunk->nr_pages = needed;
	chunk->length = needed * CONTEXT_PAGE;
	chunk->nr_superseded = 0;
	chunk->picked = true;
	p->direct = false;
}

static int load_parts(struct chain_pages *p, char *to)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->nr_parts; i++) {
		size_t length = p->part[i].nr_pages * CONTEXT_PAGE;

		err = context_memory_part(p->opened, p->offset[i], to, length);
		to += length;
	}
	return err;
}

/* ---- as a source --------------------------------------------------------------------- */

static int next(struct page_source *source, struct context_chunk *chunk)
{
	struct chain_pages *p = of_source(source);
	struct tally tally = { 0 };
	bool picks;
	int more;

	do {
		more = file_ops(p)->next(&p->file.source, chunk);
		if (!more) {
			more = next_file(p);
			if (more <= 0)
				return more;
			continue;
		}
		if (more < 0)
			return more;
		tally = tally_chunk(p, chunk);
	} while (!tally.needed);
	p->given += tally.needed;
	p->direct = tally.needed + tally.superseded == chunk->nr_pages;
	chunk->nr_needed = tally.needed;
	chunk->nr_superseded = tally.superseded;
	picks = tally.needed * FEW < chunk->nr_pages && chunk->compression == CONTEXT_RAW;
	if (!p->first && (picks || p->defers))
		find_needed(p, chunk);
	if (picks)
		pick(p, chunk, tally.needed);
	chunk->member = p->member;
	return 1;
}

static int load(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		uint64_t *sum)
{
	struct chain_pages *p = of_source(source);

	if (chunk->picked)
		return load_parts(p, buffer);
	return file_ops(p)->load(&p->file.source, chunk, buffer, sum);
}

static int begin(struct page_source *source)
{
	struct chain_pages *p = of_source(source);

	return p->direct ? file_ops(p)->begin(&p->file.source) : -1;
}

static int end(struct page_source *source, int result, uint64_t sum)
{
	struct chain_pages *p = of_source(source);

	return file_ops(p)->end(&p->file.source, result, sum);
}

/* The chunk may be of a file that has been left already. */
static int damaged(struct page_source *source, const struct context_chunk *chunk, const char *what)
{
	const struct chain *c = of_source(source)->chain;

	return report_fail(-EINVAL, "%s: damaged context file: %s (memory at byte %llu)",
			   chunk->member < c->count ? c->member[chunk->member].path : c->name, what,
			   (unsigned long long)chunk->position);
}

/* ---- the sieve ---------------------------------------------------------------------- */

/* Does the page go on?  -EINVAL: it is not what it was. */
static int sift_page(const struct chain_pages *p, const struct context_chunk *chunk, size_t page,
		     const void *data)
{
	struct context_hash hash;

	if (page == SIZE_MAX || page_map_owner(p->map, page) != chunk->member)
		return false;
	if (!chunk->picked)
		return true;
	hash = page_hash(data);
	return page_map_matches(p->map, page, &hash) ? true : -EINVAL;
}

static int sift(struct page_sieve *sieve, const struct context_chunk *chunk, bool *keep,
		struct page_table *table)
{
	const struct chain_pages *p = (const struct chain_pages *)
		((char *)sieve - offsetof(struct chain_pages, sieve));
	const char *data = chunk->data;
	page_cursor cursor = 0;

	(void)table;
	if (chunk->member == p->chain->count)
		return 0;		/* all of the last file; its tables are not complete yet */
	for (size_t i = 0; i < chunk->nr_runs; i++)
		for (uint64_t k = 0; k < chunk->runs[i].nr_pages; k++, data += CONTEXT_PAGE) {
			size_t page = page_map_find(p->map, &cursor, chunk->pid,
						    chunk->runs[i].address + k * CONTEXT_PAGE);
			int result = sift_page(p, chunk, page, data);

			if (result < 0)
				return result;
			*keep++ = result;
		}
	return 0;
}

static int move_chain(const struct pages_flow *flow, struct context_reader *last,
		      const struct chain *chain)
{
	static const struct page_source_ops source_ops = {
		.next = next, .load = load, .begin = begin, .end = end, .damaged = damaged,
	};
	static const struct page_sieve_ops sieve_ops = { .sift = sift };
	struct chain_pages p = {
		.source.ops = &source_ops, .sieve.ops = &sieve_ops, .chain = chain,
		.member = chain->count, .first = true, .map = page_map_new(),
		.defers = flow->defer,
	};
	struct pages_flow of_chain = *flow;
	int err;

	if (!p.map)
		return report_errno(-ENOMEM, "the pages of a chain");
	context_page_source(&p.file, last);
	p.file.map = p.map;
	of_chain.source = &p.source;
	of_chain.sieve = &p.sieve;
	err = pages_move(&of_chain);
	context_reader_free(p.opened);
	page_map_free(p.map);
	return err;
}

int chain_move(const struct pages_flow *flow, struct context_reader *last,
	       const struct chain *chain)
{
	struct pages_flow of_file = *flow;
	struct context_page_source file;

	if (chain)
		return move_chain(flow, last, chain);
	context_page_source(&file, last);
	of_file.source = &file.source;
	return pages_move(&of_file);
}
