// SPDX-License-Identifier: GPL-2.0
/*
 * Compression in worker threads.  A ring of slots, each with the pages of one
 * chunk: the caller fills them, workers compress them, and whoever finds the
 * oldest one compressed writes it: the caller, when it needs a slot or
 * finishes.  Memory is bounded by the number of slots.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "image/codec.h"
#include "report/report.h"

#define MAX_WORKERS	4
#define CHUNK_BYTES	(CONTEXT_CHUNK_PAGES * CONTEXT_PAGE)

enum slot_state { SLOT_FREE, SLOT_FULL, SLOT_TAKEN, SLOT_PACKED };

struct slot {
	enum slot_state state;
	pid_t pid;
	size_t nr_runs;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	uint64_t nr_pages;
	void *data;			/* CHUNK_BYTES */
	struct codec *codec;		/* holds the result, as long as the slot does */
	const void *packed;
	ssize_t length;			/* 0: not shorter, or -errno */
};

struct pack {
	struct checkpoint *c;
	bool snapshot;
	pthread_mutex_t lock;		/* guards what follows */
	pthread_cond_t changed;
	bool end;
	unsigned int next_put, next_write;	/* count chunks; slot = count % nr_slots */
	unsigned int nr_slots, nr_workers;
	struct slot slot[MAX_WORKERS + 1];
	pthread_t worker[MAX_WORKERS];
};

/* The oldest slot that waits for a worker, or NULL. */
static struct slot *find_full(struct pack *pack)
{
	for (unsigned int i = pack->next_write; i != pack->next_put; i++) {
		struct slot *slot = &pack->slot[i % pack->nr_slots];

		if (slot->state == SLOT_FULL)
			return slot;
	}
	return NULL;
}

static void *work(void *arg)
{
	struct pack *pack = arg;

	pthread_mutex_lock(&pack->lock);
	for (;;) {
		struct slot *slot = find_full(pack);

		if (!slot && pack->end)
			break;
		if (!slot) {
			pthread_cond_wait(&pack->changed, &pack->lock);
			continue;
		}
		slot->state = SLOT_TAKEN;
		pthread_mutex_unlock(&pack->lock);
		slot->length = codec_compress(slot->codec, pack->c->options->compression,
					      slot->data, slot->nr_pages * CONTEXT_PAGE,
					      &slot->packed);
		pthread_mutex_lock(&pack->lock);
		slot->state = SLOT_PACKED;
		pthread_cond_broadcast(&pack->changed);
	}
	pthread_mutex_unlock(&pack->lock);
	return NULL;
}

/* Waits for the oldest chunk and writes it. */
static int write_oldest(struct pack *pack)
{
	struct slot *slot = &pack->slot[pack->next_write % pack->nr_slots];
	enum context_compression how = pack->c->options->compression;
	int err = 0;

	pthread_mutex_lock(&pack->lock);
	while (slot->state != SLOT_PACKED)
		pthread_cond_wait(&pack->changed, &pack->lock);
	pthread_mutex_unlock(&pack->lock);
	if (slot->length < 0)
		err = report_errno(slot->length, "cannot compress memory");
	else if (slot->length)
		err = context_write_packed(pack->c->writer, slot->pid, slot->run, slot->nr_runs,
					   slot->packed, slot->length, how);
	else
		err = context_write_packed(pack->c->writer, slot->pid, slot->run, slot->nr_runs,
					   slot->data, slot->nr_pages * CONTEXT_PAGE, CONTEXT_RAW);
	pthread_mutex_lock(&pack->lock);
	slot->state = SLOT_FREE;
	pack->next_write++;
	pthread_mutex_unlock(&pack->lock);
	return err;
}

int pack_put(struct pack *pack, pid_t pid, const struct kcr_run *runs, size_t count,
	     uint64_t nr_pages)
{
	struct slot *slot = &pack->slot[pack->next_put % pack->nr_slots];
	int err = 0;

	if (pack->next_put - pack->next_write == pack->nr_slots)
		err = write_oldest(pack);
	if (!err)
		err = device_read(pack->c->job, pid, pack->snapshot ? KCR_PAGES_SNAPSHOT : 0,
				  slot->data, runs, count, NULL);
	if (err)
		return err;
	slot->pid = pid;
	slot->nr_runs = count;
	slot->nr_pages = nr_pages;
	memcpy(slot->run, runs, count * sizeof(*runs));
	pthread_mutex_lock(&pack->lock);
	slot->state = SLOT_FULL;
	pack->next_put++;
	pthread_cond_broadcast(&pack->changed);
	pthread_mutex_unlock(&pack->lock);
	return 0;
}

static void stop_workers(struct pack *pack)
{
	pthread_mutex_lock(&pack->lock);
	pack->end = true;
	pthread_cond_broadcast(&pack->changed);
	pthread_mutex_unlock(&pack->lock);
	for (unsigned int i = 0; i < pack->nr_workers; i++)
		pthread_join(pack->worker[i], NULL);
}

int pack_finish(struct pack *pack)
{
	int err = 0;

	while (!err && pack->next_write != pack->next_put)
		err = write_oldest(pack);
	stop_workers(pack);
	for (unsigned int i = 0; i < pack->nr_slots; i++) {
		codec_free(pack->slot[i].codec);
		free(pack->slot[i].data);
	}
	pthread_cond_destroy(&pack->changed);
	pthread_mutex_destroy(&pack->lock);
	free(pack);
	return err;
}

static unsigned int usable_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set) < MAX_WORKERS ? CPU_COUNT(&set) : MAX_WORKERS;
}

static int start_workers(struct pack *pack, unsigned int wanted)
{
	sigset_t all, old;
	int err = 0;

	/* Signals go to the main thread, whose handlers clean up. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (!err && pack->nr_workers < wanted) {
		err = -pthread_create(&pack->worker[pack->nr_workers], NULL, work, pack);
		if (!err)
			pack->nr_workers++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pack->nr_workers ? 0 : err;
}

int pack_new(struct pack **out, struct checkpoint *c, bool snapshot)
{
	struct pack *pack = calloc(1, sizeof(*pack));
	int err = 0;

	if (!pack)
		return report_errno(-ENOMEM, "compression");
	pack->c = c;
	pack->snapshot = snapshot;
	pthread_mutex_init(&pack->lock, NULL);
	pthread_cond_init(&pack->changed, NULL);
	pack->nr_slots = usable_processors() + 1;
	for (unsigned int i = 0; i < pack->nr_slots; i++) {
		pack->slot[i].codec = codec_new();
		pack->slot[i].data = malloc(CHUNK_BYTES);
		if (!pack->slot[i].codec || !pack->slot[i].data)
			err = -ENOMEM;
	}
	if (!err)
		err = start_workers(pack, pack->nr_slots - 1);
	if (err) {
		pack_finish(pack);
		return report_errno(err, "compression");
	}
	*out = pack;
	return 0;
}
