/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One chunk of the page pipeline (pipeline.c) with its buffers, and what a worker does with
 * it.  Whoever has taken the slot owns all of it but `state`.
 */
#ifndef KCR_IMAGE_SLOT_H
#define KCR_IMAGE_SLOT_H

#include "image/chooser.h"
#include "image/codec.h"
#include "image/pages.h"

enum slot_state { SLOT_FREE, SLOT_FULL, SLOT_TAKEN, SLOT_DONE };

struct slot {
	enum slot_state state;
	struct context_chunk chunk;
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct page_table table;
	bool keep[CONTEXT_CHUNK_PAGES];
	void *loaded, *worked;		/* CONTEXT_CHUNK_BYTES each */
	struct codec *codec;
	struct chooser_choice choice;
	size_t length;			/* of the pages, before they were compressed … */
	uint64_t ns;			/* … which has taken so long */
	bool stored;			/* by the worker, or that failed */
	int error;
	const char *wrong;		/* what is wrong with the data, or NULL */
};

/* 0 or -ENOMEM; slot_free() in any case, also of a slot that is all zero. */
int slot_init(struct slot *slot);
void slot_free(struct slot *slot);

/* Decodes, sifts and encodes the chunk, as the flow demands.  0 or -errno, silently. */
int slot_work(struct slot *slot, const struct pages_flow *flow);

#endif /* KCR_IMAGE_SLOT_H */
