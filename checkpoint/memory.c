// SPDX-License-Identifier: GPL-2.0
/*
 * Saves the pages: finds those worth saving, gathers them in chunks across
 * mappings, and has the module write each chunk straight into the context
 * file (or, to compress it, into a buffer: pack.c).
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"
#include "report/report.h"

struct chunk {
	struct checkpoint *c;
	struct pack *pack;		/* NULL: not compressed */
	bool snapshot;
	pid_t pid;
	uint64_t nr_pages;
	size_t nr_runs;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
};

static int write_raw(struct chunk *chunk)
{
	struct context_writer *w = chunk->c->writer;
	uint64_t sum;
	int err = context_memory_begin(w, chunk->pid, chunk->run, chunk->nr_runs);

	if (!err)
		err = device_write(chunk->c->job, chunk->pid,
				   chunk->snapshot ? KCR_PAGES_SNAPSHOT : 0,
				   context_writer_fd(w), chunk->run, chunk->nr_runs, &sum);
	return err ? err : context_memory_end(w, sum);
}

static int flush(struct chunk *chunk)
{
	const struct checkpoint_options *o = chunk->c->options;
	int err;

	if (!chunk->nr_runs)
		return 0;
	err = chunk->pack ? pack_put(chunk->pack, chunk->pid, chunk->run, chunk->nr_runs,
				     chunk->nr_pages) : write_raw(chunk);
	chunk->c->result->nr_pages += chunk->nr_pages;
	chunk->c->written_bytes += chunk->nr_pages * CONTEXT_PAGE;
	chunk->nr_runs = chunk->nr_pages = 0;
	if (!err && o->progress)
		o->progress(o->progress_arg, chunk->c->written_bytes, chunk->c->expected_bytes);
	return err;
}

static uint32_t scan_flags(const struct chunk *chunk, enum save_pages how)
{
	uint32_t flags = chunk->snapshot ? KCR_SCAN_SNAPSHOT : 0;

	if (how == SAVE_COPIED)
		flags |= KCR_SCAN_PRIVATE | KCR_SCAN_KEEP_ZERO;
	else if (how == SAVE_ALL)
		flags |= KCR_SCAN_ALL | KCR_SCAN_KEEP_ZERO;
	return flags;
}

static int save_region(struct chunk *chunk, const struct region *r)
{
	struct kcr_scan scan = {
		.flags = scan_flags(chunk, r->how), .pid = chunk->pid,
		.start = r->start, .end = r->end,
	};

	while (scan.start < r->end) {
		int err;

		scan.count = CONTEXT_CHUNK_RUNS - chunk->nr_runs;
		scan.max_pages = CONTEXT_CHUNK_PAGES - chunk->nr_pages;
		scan.runs = (uintptr_t)&chunk->run[chunk->nr_runs];
		err = device_scan(chunk->c->job, &scan);
		if (err)
			return err;
		chunk->nr_runs += scan.count;
		chunk->nr_pages += scan.nr_pages;
		scan.start = scan.next;
		if (chunk->nr_pages == CONTEXT_CHUNK_PAGES ||
		    chunk->nr_runs == CONTEXT_CHUNK_RUNS || scan.next < r->end) {
			err = flush(chunk);
			if (err)
				return err;
		}
	}
	return 0;
}

static int save_space(struct chunk *chunk, const struct address_space *space, bool early)
{
	int err = 0;

	chunk->pid = space->pid;
	for (size_t i = 0; !err && i < space->nr_regions; i++)
		if (space->region[i].early == early)
			err = save_region(chunk, &space->region[i]);
	return err ? err : flush(chunk);
}

bool memory_has_early(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->nr_spaces; i++)
		for (size_t k = 0; k < c->space[i].nr_regions; k++)
			if (c->space[i].region[k].early)
				return true;
	return false;
}

int memory_write(struct checkpoint *c, bool early, bool snapshot)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	int err = 0, end;

	if (!chunk)
		return report_errno(-ENOMEM, "writing memory");
	chunk->c = c;
	chunk->snapshot = snapshot;
	if (c->options->compression != CONTEXT_RAW)
		err = pack_new(&chunk->pack, c, snapshot);
	for (size_t i = 0; !err && i < c->nr_spaces; i++)
		err = save_space(chunk, &c->space[i], early);
	end = chunk->pack ? pack_finish(chunk->pack) : 0;
	free(chunk);
	return err ? err : end;
}
