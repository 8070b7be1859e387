// SPDX-License-Identifier: GPL-2.0
/* What a worker does with a chunk; see slot.h. */
#include "image/slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "proc/clock.h"

int slot_init(struct slot *slot)
{
	slot->codec = codec_new();
	slot->loaded = malloc(CONTEXT_CHUNK_BYTES);
	slot->worked = malloc(CONTEXT_CHUNK_BYTES);
	return slot->codec && slot->loaded && slot->worked ? 0 : -ENOMEM;
}

void slot_free(struct slot *slot)
{
	codec_free(slot->codec);
	free(slot->loaded);
	free(slot->worked);
}

static int encode(struct slot *slot)
{
	const struct compression *how = &slot->choice.how;
	struct context_chunk *chunk = &slot->chunk;
	void *out = chunk->data == slot->worked ? slot->loaded : slot->worked;
	uint64_t start = now_ns();
	ssize_t length = 0;

	slot->length = chunk->length;
	if (how->kind != CONTEXT_RAW && chunk->length)
		length = codec_compress(slot->codec, how, chunk->data, chunk->length, out);
	slot->ns = now_ns() - start;
	if (length < 0)
		return length;
	if (length) {
		chunk->compression = how->kind;
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

int slot_work(struct slot *slot, const struct pages_flow *flow)
{
	int err = flow->work == PAGES_ENCODE ? 0 : decode(slot);

	if (!err && flow->sieve)
		err = sift(flow, slot);
	if (!err && flow->work != PAGES_DECODE)
		err = encode(slot);
	return err;
}
