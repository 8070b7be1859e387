// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of rebuilt processes, as a sink of the page pipeline: the module
 * reads raw pages from the context file into place; pages that had to be
 * decompressed or came from a pipe are copied from a buffer.  No process runs
 * before all of it has been verified.
 *
 * The pages of an increment come from its chain (image/chain.h); those that are equal to others
 * last (duplicates.h).
 */
#include "restart/memory.h"

#include "device/device.h"
#include "image/chain.h"
#include "resource/file.h"
#include "resource/mempolicy.h"
#include "restart/duplicates.h"
#include "restart/lazy.h"
#include "restart/user_faults.h"

struct filling {
	struct page_sink sink;
	const struct rebuild *rebuild;
	const struct user_faults *faults;	/* NULL: there are none */
	const struct restart_options *options;
	struct restart_result *result;
};

static struct filling *filling(struct page_sink *sink)
{
	return (struct filling *)sink;
}

static void count(struct filling *f, const struct context_chunk *chunk)
{
	const Kcr__Preamble *preamble = f->rebuild->context->preamble;

	f->result->nr_pages += chunk->nr_pages - chunk->nr_superseded;
	if (f->options->progress)
		f->options->progress(f->options->progress_arg, f->result->nr_pages * CONTEXT_PAGE,
				     preamble->has_image_bytes_hint ?
				     preamble->image_bytes_hint : 0);
}

static int store(struct page_sink *sink, const struct context_chunk *chunk)
{
	const struct filling *f = filling(sink);
	const struct rebuild *r = f->rebuild;
	int err;

	mempolicy_adopt(r, chunk->pid);
	err = f->faults ? user_faults_store(f->faults, chunk) :
			  device_store(r->job, rebuild_pid(r, chunk->pid), chunk->data, chunk->runs,
				       chunk->nr_runs, NULL);
	if (!err)
		count(filling(sink), chunk);
	return err;
}

static int fill(struct page_sink *sink, const struct context_chunk *chunk, int fd, uint64_t *sum)
{
	const struct rebuild *r = filling(sink)->rebuild;
	int err;

	mempolicy_adopt(r, chunk->pid);
	err = device_fill(r->job, rebuild_pid(r, chunk->pid), fd, chunk->runs, chunk->nr_runs, sum);
	if (!err)
		count(filling(sink), chunk);
	return err;
}

/* Where pages come from: a chunk of one file, of whose pages some may be taken. */
static void account(void *arg, const struct context_chunk *chunk)
{
	struct restart_result *result = arg;
	struct compression_count *kind = &result->compression[chunk->compression];

	result->image[chunk->member].nr_pages += chunk->nr_needed;
	result->image[chunk->member].bytes += chunk->length;
	kind->chunks++;
	kind->bytes += chunk->nr_needed * CONTEXT_PAGE;
	kind->stored += chunk->length;
}

int memory_fill(struct rebuild *r, const struct user_faults *faults,
		struct context_reader *reader, const struct restart_options *options,
		struct restart_result *result)
{
	static const struct page_sink_ops ops = { .unordered = true, .store = store, .fill = fill };
	/* The module fills memory as programs do, which is not for all of it. */
	static const struct page_sink_ops by_store = { .unordered = true, .store = store };
	struct filling f = {
		.sink.ops = faults ? &by_store : &ops, .rebuild = r, .faults = faults,
		.options = options, .result = result,
	};
	int err;

	if (r->lazy)
		context_reader_skim(reader, CONTEXT_SKIM_TABLES);
	err = chain_move(&(struct pages_flow) {
		.defer = r->lazy ? lazy_defer : NULL, .defer_arg = r->lazy,
		.sink = &f.sink, .work = PAGES_DECODE, .progress = account, .progress_arg = result,
	}, reader, options->chain);
	if (!err)
		err = duplicates_fill(r, reader, &f.sink, &result->nr_duplicates);
	result->nr_pages -= result->nr_duplicates;	/* the sink has counted all */
	return err;
}
