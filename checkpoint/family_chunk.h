/* SPDX-License-Identifier: GPL-2.0 */
/* What family.c and family_find.c have in common. */
#ifndef KCR_CHECKPOINT_FAMILY_CHUNK_H
#define KCR_CHECKPOINT_FAMILY_CHUNK_H

#include "image/context.h"

#define WINDOW		CONTEXT_CHUNK_PAGES
#define WINDOW_BYTES	((uint64_t)CONTEXT_CHUNK_BYTES)

/* Pages of a process in a window. */
struct share {
	size_t space;
	bool page[WINDOW];
};

/* What one owner shares in a window. */
struct family_chunk {
	uint64_t base;			/* address of the window */
	bool certain;			/* the same frames: nothing to compare */
	size_t nr_shares;
	struct share *share;		/* the first one is the owner's */
	/* When it was passed on: */
	struct kcr_run *runs;
	struct context_sharer *sharer;
};

struct family {
	size_t nr_chunks, at;
	struct family_chunk *chunk;
	char *ours, *theirs;		/* CONTEXT_CHUNK_BYTES each, to compare */
};

#endif /* KCR_CHECKPOINT_FAMILY_CHUNK_H */
