// SPDX-License-Identifier: GPL-2.0
/*
 * The page pipeline.  A ring of slots (slot.h), each with one chunk: the caller's thread
 * loads them from the source, or leaves that to the workers if the source does not mind; workers
 * sift, encode or decode them, and the caller's thread passes the oldest one to the sink when it
 * needs a slot or finishes.  So memory is bounded by the number of slots, and the sink gets the
 * chunks in the order of the source; unless it does not mind: then the worker passes each on.  In
 * both cases loading and storing go on at the same time.  The threads are created when a chunk
 * first needs them.
 *
 * With adaptive compression (chooser.h) a chunk that is not to be compressed may still go the
 * direct way: then those before it have to be stored first, so that it waits for some of its
 * kind.  Now and then a part of a chunk is stored with nothing else going on.
 */
#include "image/pages.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "image/chooser.h"
#include "image/slot.h"
#include "proc/clock.h"
#include "proc/thread.h"
#include "report/report.h"

#define MAX_WORKERS	4
#define MANY_RAW	4	/* in a row: it is worth while to wait for the chunks before */

struct pipeline {
	const struct pages_flow *flow;
	pthread_mutex_t storing;	/* held while chunks are stored or filled */
	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t full;		/* a slot, or the end */
	pthread_cond_t done;		/* a slot */
	bool end;
	unsigned int next_put, next_store;	/* count chunks; slot = count % nr_slots */
	unsigned int nr_slots, nr_workers;
	unsigned int nr_raw;		/* chunks in a row that were not to be compressed */
	bool alone;			/* no worker has anything to do meanwhile */
	struct slot slot[MAX_WORKERS + 1];
	pthread_t worker[MAX_WORKERS];
};

/* ---- workers ----------------------------------------------------------------------- */

/* Around what is written to the destination. */
static void begin_measure(const struct pages_flow *flow, bool alone)
{
	if (flow->chooser)
		rate_begin(chooser_rate(flow->chooser), alone);
}

static int end_measure(const struct pages_flow *flow, uint64_t bytes)
{
	return flow->chooser ? rate_end(chooser_rate(flow->chooser), bytes) : 0;
}

static int store(struct pipeline *p, const struct slot *slot)
{
	struct page_sink *sink = p->flow->sink;
	int err;

	if (!slot->chunk.nr_pages && !slot->chunk.table)
		return 0;
	pthread_mutex_lock(&p->storing);
	begin_measure(p->flow, p->alone);
	err = sink->ops->store(sink, &slot->chunk);
	if (!err)
		err = end_measure(p->flow, slot->chunk.length);
	pthread_mutex_unlock(&p->storing);
	return err;
}

static int load(const struct pages_flow *flow, struct slot *slot)
{
	struct page_source *source = flow->source;
	uint64_t start = now_ns();
	int err = source->ops->load(source, &slot->chunk, slot->loaded, &slot->chunk.sum);

	if (!err && flow->chooser && slot->chunk.length)
		chooser_loaded(flow->chooser, slot->chunk.length, now_ns() - start);
	return err;
}

/* Do workers load?  A chooser takes the caller's thread for the one that does. */
static bool workers_load(const struct pages_flow *flow)
{
	return flow->source->ops->concurrent && !flow->chooser;
}

static void work_at(struct pipeline *p, struct slot *slot)
{
	const struct pages_flow *flow = p->flow;
	int err = workers_load(flow) ? load(flow, slot) : 0;

	if (!err)
		err = slot_work(slot, flow);
	slot->stored = !err && flow->sink->ops->unordered;
	slot->error = slot->stored ? store(p, slot) : err;
}

/* The oldest slot that waits for a worker, or NULL. */
static struct slot *find_full(struct pipeline *p)
{
	for (unsigned int i = p->next_store; i != p->next_put; i++) {
		struct slot *slot = &p->slot[i % p->nr_slots];

		if (slot->state == SLOT_FULL)
			return slot;
	}
	return NULL;
}

static void *work(void *arg)
{
	struct pipeline *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct slot *slot = find_full(p);

		if (!slot && p->end)
			break;
		if (!slot) {
			pthread_cond_wait(&p->full, &p->lock);
			continue;
		}
		slot->state = SLOT_TAKEN;
		pthread_mutex_unlock(&p->lock);
		work_at(p, slot);
		pthread_mutex_lock(&p->lock);
		slot->state = SLOT_DONE;
		pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

unsigned int pages_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set) < MAX_WORKERS ? CPU_COUNT(&set) : MAX_WORKERS;
}

/* As many as can be had: without any, the caller's thread does the work. */
static void start_threads(struct pipeline *p)
{
	while (p->nr_workers < p->nr_slots - 1 &&
	       !thread_start(&p->worker[p->nr_workers], work, p))
		p->nr_workers++;
}

static int start_workers(struct pipeline *p)
{
	p->nr_slots = pages_processors() + 1;
	for (unsigned int i = 0; i < p->nr_slots; i++) {
		int err = slot_init(&p->slot[i]);

		if (err)
			return report_errno(err, "buffers for pages");
	}
	start_threads(p);
	return 0;
}

static void stop_workers(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->end = true;
	pthread_cond_broadcast(&p->full);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->nr_workers; i++)
		pthread_join(p->worker[i], NULL);
	for (unsigned int i = 0; i < p->nr_slots; i++)
		slot_free(&p->slot[i]);
}

/* ---- the caller's thread ----------------------------------------------------------- */

static int explain(const struct pages_flow *flow, const struct slot *slot)
{
	if (slot->wrong && flow->source->ops->damaged)
		return flow->source->ops->damaged(flow->source, &slot->chunk, slot->wrong);
	return report_errno(slot->error, flow->work == PAGES_ENCODE ? "cannot compress memory" :
			    "cannot decompress memory");
}

static void count(const struct pages_flow *flow, enum context_compression kind, uint64_t bytes,
		  uint64_t stored)
{
	if (!flow->count || !bytes)
		return;
	flow->count[kind].chunks++;
	flow->count[kind].bytes += bytes;
	flow->count[kind].stored += stored;
}

/* What has come of a chunk that was stored. */
static void account(const struct pages_flow *flow, const struct slot *slot)
{
	const struct context_chunk *chunk = &slot->chunk;

	if (flow->work == PAGES_DECODE)
		return;
	count(flow, chunk->compression, slot->length, chunk->length);
	if (flow->chooser)
		chooser_compressed(flow->chooser, &slot->choice, slot->length,
				   chunk->compression ? chunk->length : 0, slot->ns);
}

/* Waits for the oldest chunk and passes it to the sink, if the worker has not. */
static int store_oldest(struct pipeline *p)
{
	struct slot *slot = &p->slot[p->next_store % p->nr_slots];
	int err;

	pthread_mutex_lock(&p->lock);
	while (slot->state != SLOT_DONE)
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
	if (slot->stored)
		err = slot->error;
	else
		err = slot->error ? explain(p->flow, slot) : store(p, slot);
	if (!err)
		account(p->flow, slot);
	pthread_mutex_lock(&p->lock);
	slot->state = SLOT_FREE;
	p->next_store++;
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* Copies the chunk, which has no data yet, to the slot. */
static void take(struct slot *slot, const struct context_chunk *chunk,
		 const struct chooser_choice *choice)
{
	slot->chunk = *chunk;
	slot->chunk.runs = memcpy(slot->run, chunk->runs, chunk->nr_runs * sizeof(*chunk->runs));
	slot->chunk.data = slot->loaded;
	slot->choice = *choice;
	slot->error = 0;
	slot->wrong = NULL;
}

static int put(struct pipeline *p, const struct context_chunk *chunk,
	       const struct chooser_choice *choice)
{
	struct slot *slot;
	bool done;
	int err = p->nr_slots ? 0 : start_workers(p);

	if (!err && p->next_put - p->next_store == p->nr_slots)
		err = store_oldest(p);
	if (err)
		return err;
	slot = &p->slot[p->next_put % p->nr_slots];
	take(slot, chunk, choice);
	err = workers_load(p->flow) ? 0 : load(p->flow, slot);
	if (err)
		return err;
	/* What has no data is not worth a worker's waking up. */
	done = !p->nr_workers || chunk->unwritten;
	if (done)
		work_at(p, slot);
	pthread_mutex_lock(&p->lock);
	slot->state = done ? SLOT_DONE : SLOT_FULL;
	p->next_put++;
	if (!done)
		pthread_cond_signal(&p->full);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int store_all(struct pipeline *p)
{
	int err = 0;

	while (!err && p->next_store != p->next_put)
		err = store_oldest(p);
	return err;
}

/* Has the module write the pages to the sink's file descriptor. */
static int send(struct pipeline *p, const struct context_chunk *chunk)
{
	const struct pages_flow *flow = p->flow;
	int err = store_all(p), fd;
	uint64_t sum;

	if (err)
		return err;
	fd = flow->sink->ops->begin(flow->sink, chunk);
	if (fd < 0)
		return fd;
	begin_measure(flow, true);
	err = flow->source->ops->send(flow->source, chunk, fd, &sum);
	if (!err)
		err = flow->sink->ops->end(flow->sink, sum);
	if (!err)
		err = end_measure(flow, chunk->length);
	if (!err)
		count(flow, CONTEXT_RAW, chunk->length, chunk->length);
	return err;
}

/* Has the module read the pages from the source's file descriptor. */
static int fill(struct pipeline *p, const struct context_chunk *chunk, int fd)
{
	const struct pages_flow *flow = p->flow;
	uint64_t sum = 0;
	int err;

	pthread_mutex_lock(&p->storing);
	err = flow->sink->ops->fill(flow->sink, chunk, fd, &sum);
	pthread_mutex_unlock(&p->storing);
	if (err && err != -ENODATA)
		return err;
	return flow->source->ops->end(flow->source, err, sum);
}

/* Could raw chunks pass by the workers? */
static bool is_direct(const struct pages_flow *flow)
{
	return flow->work == PAGES_ENCODE && !flow->sieve && flow->source->ops->send &&
	       flow->sink->ops->begin;
}

/* Moves up to `nr_pages` pages from the front of a chunk to *out; where its runs begin now. */
static struct kcr_run *split(struct context_chunk *chunk, struct kcr_run *rest, uint64_t nr_pages,
			     struct context_chunk *out, struct kcr_run *run)
{
	*out = *chunk;
	out->runs = run;
	out->nr_runs = out->nr_pages = 0;
	while (chunk->nr_runs && out->nr_pages < nr_pages) {
		uint64_t n = nr_pages - out->nr_pages;

		n = n < rest->nr_pages ? n : rest->nr_pages;
		run[out->nr_runs++] = (struct kcr_run){ .address = rest->address, .nr_pages = n };
		out->nr_pages += n;
		rest->address += n * CONTEXT_PAGE;
		rest->nr_pages -= n;
		if (rest->nr_pages)
			break;
		rest++;
		chunk->nr_runs--;
	}
	out->length = out->nr_pages * CONTEXT_PAGE;
	chunk->runs = rest;
	chunk->nr_pages -= out->nr_pages;
	chunk->length -= out->length;
	return rest;
}

/* May a chunk go directly from the module to the file? */
static bool may_send(struct pipeline *p, const struct chooser_choice *choice)
{
	p->nr_raw = choice->how.kind == CONTEXT_RAW ? p->nr_raw + 1 : 0;
	return p->nr_raw && (p->next_store == p->next_put || p->nr_raw >= MANY_RAW);
}

/* Chooses compression and route: raw pages need not pass through user space. */
static int move_out(struct pipeline *p, const struct context_chunk *chunk)
{
	const struct pages_flow *flow = p->flow;
	bool direct = is_direct(flow);
	struct chooser_choice choice = { .how = flow->compression };
	int err = 0;

	if (flow->chooser && !chunk->unwritten)
		err = chooser_choose(flow->chooser, flow->source, chunk, direct, &choice);
	if (err)
		return err;
	return direct && may_send(p, &choice) ? send(p, chunk) : put(p, chunk, &choice);
}

/* Stores a part of the chunk, which is then left out, with nothing else going on. */
static int store_part(struct pipeline *p, struct context_chunk *chunk, struct kcr_run **rest)
{
	static const struct chooser_choice none;
	struct kcr_run run[CHOOSER_PROBE];
	struct context_chunk part;
	int err;

	*rest = split(chunk, *rest, CHOOSER_PROBE, &part, run);
	p->alone = true;
	err = is_direct(p->flow) ? send(p, &part) : put(p, &part, &none) ?: store_all(p);
	p->alone = false;
	chooser_probed(p->flow->chooser);
	return err;
}

static int move_adaptively(struct pipeline *p, const struct context_chunk *chunk)
{
	const struct chooser *chooser = p->flow->chooser;
	struct kcr_run run[CONTEXT_CHUNK_RUNS], *rest = run;
	struct context_chunk left = *chunk;
	int err = 0;

	if (chooser_probe_is_due(chooser)) {
		memcpy(run, chunk->runs, chunk->nr_runs * sizeof(*run));
		err = store_all(p);
		while (!err && left.nr_pages && chooser_probe_is_due(chooser))
			err = store_part(p, &left, &rest);
	}
	return err || !left.nr_pages ? err : move_out(p, &left);
}

static int move_in(struct pipeline *p, const struct context_chunk *chunk)
{
	static const struct chooser_choice none;
	const struct page_source_ops *from = p->flow->source->ops;
	int fd = -1;

	if (chunk->compression == CONTEXT_RAW && from->begin && p->flow->sink->ops->fill)
		fd = from->begin(p->flow->source);
	return fd < 0 ? put(p, chunk, &none) : fill(p, chunk, fd);
}

static int move_all(struct pipeline *p)
{
	const struct pages_flow *flow = p->flow;
	struct context_chunk chunk;
	int more, err;

	for (;;) {
		chunk = (struct context_chunk){ .compression = CONTEXT_RAW };
		more = flow->source->ops->next(flow->source, &chunk);
		if (more <= 0)
			break;
		if (flow->defer && flow->defer(flow->defer_arg, &chunk))
			continue;
		if (chunk.elsewhere)
			return report_fail(-EINVAL, "pages are missing that are elsewhere");
		if (flow->work == PAGES_DECODE)
			err = move_in(p, &chunk);
		else if (flow->chooser && !chunk.unwritten && !chunk.nr_sharers)
			err = move_adaptively(p, &chunk);
		else
			err = move_out(p, &chunk);
		if (err)
			return err;
		if (flow->progress)
			flow->progress(flow->progress_arg, &chunk);
	}
	return more ? more : store_all(p);
}

int pages_move(const struct pages_flow *flow)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return report_errno(-ENOMEM, "pages");
	p->flow = flow;
	pthread_mutex_init(&p->storing, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->full, NULL);
	pthread_cond_init(&p->done, NULL);
	err = move_all(p);
	stop_workers(p);
	pthread_cond_destroy(&p->done);
	pthread_cond_destroy(&p->full);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->storing);
	free(p);
	return err;
}
