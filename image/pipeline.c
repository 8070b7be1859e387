// SPDX-License-Identifier: GPL-2.0
/*
 * The page pipeline.  A ring of slots, each with one chunk: the caller's thread
 * loads them from the source, workers sift, encode or decode them, and the caller's
 * thread passes the oldest one to the sink when it needs a slot or finishes.  So
 * memory is bounded by the number of slots, and the sink gets the chunks in the
 * order of the source; unless it does not mind: then the worker passes each on, so that
 * loading and storing go on at the same time.  The threads are created when a chunk first
 * needs them.
 */
#include "image/pages.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "image/codec.h"
#include "report/report.h"

#define MAX_WORKERS	4

enum slot_state { SLOT_FREE, SLOT_FULL, SLOT_TAKEN, SLOT_DONE };

struct slot {
	enum slot_state state;
	struct context_chunk chunk;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct page_table table;
	bool keep[CONTEXT_CHUNK_PAGES];
	void *loaded, *worked;		/* CONTEXT_CHUNK_BYTES each */
	struct codec *codec;
	bool stored;			/* by the worker, or that failed */
	int error;
	const char *wrong;		/* what is wrong with the data, or NULL */
};

struct pipeline {
	const struct pages_flow *flow;
	pthread_mutex_t storing;	/* held while chunks are stored or filled */
	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t changed;
	bool end;
	unsigned int next_put, next_store;	/* count chunks; slot = count % nr_slots */
	unsigned int nr_slots, nr_workers;
	struct slot slot[MAX_WORKERS + 1];
	pthread_t worker[MAX_WORKERS];
};

/* ---- workers ----------------------------------------------------------------------- */

static int encode(const struct pages_flow *flow, struct slot *slot)
{
	struct context_chunk *chunk = &slot->chunk;
	void *out = chunk->data == slot->worked ? slot->loaded : slot->worked;
	ssize_t length = 0;

	if (flow->compression != CONTEXT_RAW && chunk->length)
		length = codec_compress(slot->codec, flow->compression, chunk->data,
					chunk->length, out);
	if (length < 0)
		return length;
	if (length) {
		chunk->compression = flow->compression;
		chunk->data = out;
		chunk->length = length;
	}
	chunk->sum = XXH64(chunk->data, chunk->length, 0);
	return 0;
}

static int decode(struct slot *slot)
{
	struct context_chunk *chunk = &slot->chunk;
	size_t length = chunk->nr_pages * CONTEXT_PAGE;
	int err;

	if (!chunk->picked && XXH64(chunk->data, chunk->length, 0) != chunk->sum) {
		slot->wrong = "wrong checksum of the data";
		return -EINVAL;
	}
	if (chunk->compression == CONTEXT_RAW)
		return 0;
	err = codec_decompress(slot->codec, chunk->compression, chunk->data, chunk->length,
			       slot->worked, length);
	if (err == -EINVAL)
		slot->wrong = "malformed compression";
	chunk->compression = CONTEXT_RAW;
	chunk->data = slot->worked;
	chunk->length = length;
	return err;
}

/* Moves the pages that are kept together, and adapts the runs. */
static void compact(struct slot *slot)
{
	struct context_chunk *chunk = &slot->chunk;
	char *pages = (void *)chunk->data;
	size_t from = 0, to = 0, nr_runs = 0;
	struct kcr_run old[CONTEXT_CHUNK_RUNS], *last = NULL;

	memcpy(old, slot->run, chunk->nr_runs * sizeof(*old));
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		for (uint64_t k = 0; k < old[i].nr_pages; k++, from++) {
			uint64_t address = old[i].address + k * CONTEXT_PAGE;

			if (!slot->keep[from])
				continue;
			if (from != to)
				memcpy(pages + to * CONTEXT_PAGE, pages + from * CONTEXT_PAGE,
				       CONTEXT_PAGE);
			to++;
			if (!last || last->address + last->nr_pages * CONTEXT_PAGE != address) {
				last = &slot->run[nr_runs++];
				*last = (struct kcr_run){ .address = address };
			}
			last->nr_pages++;
		}
	}
	chunk->nr_runs = nr_runs;
	chunk->nr_pages = to;
	chunk->nr_superseded = 0;
	chunk->length = to * CONTEXT_PAGE;
}

static int sift(const struct pages_flow *flow, struct slot *slot)
{
	struct page_table *t = &slot->table;
	int err;

	memset(slot->keep, true, slot->chunk.nr_pages);
	t->table = (struct context_table){
		.pid = slot->chunk.pid, .runs = t->run, .hash = t->hash, .owner = t->owner,
	};
	err = flow->sieve->ops->sift(flow->sieve, &slot->chunk, slot->keep, t);
	if (err == -EINVAL)
		slot->wrong = "wrong checksum of a page";
	if (err)
		return err;
	if (t->table.nr_pages)
		slot->chunk.table = &t->table;
	if (memchr(slot->keep, 0, slot->chunk.nr_pages))
		compact(slot);
	return 0;
}

static int store(struct pipeline *p, const struct slot *slot)
{
	struct page_sink *sink = p->flow->sink;
	int err;

	if (!slot->chunk.nr_pages && !slot->chunk.table)
		return 0;
	pthread_mutex_lock(&p->storing);
	err = sink->ops->store(sink, &slot->chunk);
	pthread_mutex_unlock(&p->storing);
	return err;
}

static void work_at(struct pipeline *p, struct slot *slot)
{
	const struct pages_flow *flow = p->flow;
	int err = flow->work == PAGES_ENCODE ? 0 : decode(slot);

	if (!err && flow->sieve)
		err = sift(flow, slot);
	if (!err && flow->work != PAGES_DECODE)
		err = encode(flow, slot);
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
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		slot->state = SLOT_TAKEN;
		pthread_mutex_unlock(&p->lock);
		work_at(p, slot);
		pthread_mutex_lock(&p->lock);
		slot->state = SLOT_DONE;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static unsigned int usable_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set) < MAX_WORKERS ? CPU_COUNT(&set) : MAX_WORKERS;
}

/* As many as can be had: without any, the caller's thread does the work. */
static void start_threads(struct pipeline *p)
{
	sigset_t all, old;

	/* Signals go to the main thread, whose handlers clean up. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (p->nr_workers < p->nr_slots - 1 &&
	       !pthread_create(&p->worker[p->nr_workers], NULL, work, p))
		p->nr_workers++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static int start_workers(struct pipeline *p)
{
	int err = 0;

	p->nr_slots = usable_processors() + 1;
	for (unsigned int i = 0; i < p->nr_slots; i++) {
		struct slot *slot = &p->slot[i];

		slot->codec = codec_new();
		slot->loaded = malloc(CONTEXT_CHUNK_BYTES);
		slot->worked = malloc(CONTEXT_CHUNK_BYTES);
		if (!slot->codec || !slot->loaded || !slot->worked)
			err = -ENOMEM;
	}
	if (err)
		return report_errno(err, "buffers for pages");
	start_threads(p);
	return 0;
}

static void stop_workers(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->end = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->nr_workers; i++)
		pthread_join(p->worker[i], NULL);
	for (unsigned int i = 0; i < p->nr_slots; i++) {
		codec_free(p->slot[i].codec);
		free(p->slot[i].loaded);
		free(p->slot[i].worked);
	}
}

/* ---- the caller's thread ----------------------------------------------------------- */

static int explain(const struct pages_flow *flow, const struct slot *slot)
{
	if (slot->wrong && flow->source->ops->damaged)
		return flow->source->ops->damaged(flow->source, &slot->chunk, slot->wrong);
	return report_errno(slot->error, flow->work == PAGES_ENCODE ? "cannot compress memory" :
			    "cannot decompress memory");
}

/* Waits for the oldest chunk and passes it to the sink, if the worker has not. */
static int store_oldest(struct pipeline *p)
{
	struct slot *slot = &p->slot[p->next_store % p->nr_slots];
	int err;

	pthread_mutex_lock(&p->lock);
	while (slot->state != SLOT_DONE)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	if (slot->stored)
		err = slot->error;
	else
		err = slot->error ? explain(p->flow, slot) : store(p, slot);
	pthread_mutex_lock(&p->lock);
	slot->state = SLOT_FREE;
	p->next_store++;
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* Copies the chunk to the slot and loads its data. */
static int load(struct page_source *source, const struct context_chunk *chunk, struct slot *slot)
{
	slot->chunk = *chunk;
	slot->chunk.runs = memcpy(slot->run, chunk->runs, chunk->nr_runs * sizeof(*chunk->runs));
	slot->chunk.data = slot->loaded;
	slot->error = 0;
	slot->wrong = NULL;
	return source->ops->load(source, chunk, slot->loaded, &slot->chunk.sum);
}

static int put(struct pipeline *p, const struct context_chunk *chunk)
{
	struct slot *slot;
	int err = p->nr_slots ? 0 : start_workers(p);

	if (!err && p->next_put - p->next_store == p->nr_slots)
		err = store_oldest(p);
	if (err)
		return err;
	slot = &p->slot[p->next_put % p->nr_slots];
	err = load(p->flow->source, chunk, slot);
	if (err)
		return err;
	if (!p->nr_workers)
		work_at(p, slot);
	pthread_mutex_lock(&p->lock);
	slot->state = p->nr_workers ? SLOT_FULL : SLOT_DONE;
	p->next_put++;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Has the module write the pages to the sink's file descriptor. */
static int send(const struct pages_flow *flow, const struct context_chunk *chunk)
{
	int fd = flow->sink->ops->begin(flow->sink, chunk), err;
	uint64_t sum;

	if (fd < 0)
		return fd;
	err = flow->source->ops->send(flow->source, chunk, fd, &sum);
	return err ? err : flow->sink->ops->end(flow->sink, sum);
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

/* Chooses the route: raw pages need not pass through user space. */
static int move(struct pipeline *p, const struct context_chunk *chunk)
{
	const struct pages_flow *flow = p->flow;
	const struct page_source_ops *from = flow->source->ops;
	const struct page_sink_ops *to = flow->sink->ops;
	int fd = -1;

	if (flow->work == PAGES_ENCODE && flow->compression == CONTEXT_RAW && !flow->sieve &&
	    from->send && to->begin)
		return send(flow, chunk);
	if (flow->work == PAGES_DECODE && chunk->compression == CONTEXT_RAW && from->begin &&
	    to->fill)
		fd = from->begin(flow->source);
	return fd < 0 ? put(p, chunk) : fill(p, chunk, fd);
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
		err = move(p, &chunk);
		if (err)
			return err;
		if (flow->progress)
			flow->progress(flow->progress_arg, chunk.nr_pages);
	}
	while (!more && p->next_store != p->next_put)
		more = store_oldest(p);
	return more;
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
	pthread_cond_init(&p->changed, NULL);
	err = move_all(p);
	stop_workers(p);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->storing);
	free(p);
	return err;
}
