/* SPDX-License-Identifier: GPL-2.0 */
/* Counts of what follows the description in a context file. */
#ifndef KCR_IMAGE_SUMMARY_H
#define KCR_IMAGE_SUMMARY_H

#include "image/compression.h"
#include "image/context.h"

/* Pages that are stored as those of another process, or as equal ones, are of kinds by themselves. */
#define SUMMARY_SHARED	CONTEXT_COMPRESSIONS
#define SUMMARY_DUPLICATE	(CONTEXT_COMPRESSIONS + 1)
#define SUMMARY_KINDS	(CONTEXT_COMPRESSIONS + 2)

/* Pages of one mapping. */
struct summary_mapping {
	uint64_t pages[SUMMARY_KINDS];		/* saved here, by compression; shared; duplicates */
	uint64_t older;				/* in the files that an increment needs */
};

/* Of one process. */
struct summary_memory {
	uint64_t sections, runs, pages;
	uint64_t older, shared, duplicates;
	struct compression_count compression[CONTEXT_COMPRESSIONS];
	struct summary_mapping *mapping;	/* by index of its memory map; NULL: it has none */
};

struct summary {
	struct summary_memory *memory;		/* by index of context->process */
	size_t nr_memories;
	uint64_t *content;			/* bytes, by file id - 1 */
	uint64_t content_bytes;
	uint64_t sections;			/* of contents and memory */
	uint64_t pages, shared, duplicates;
	uint64_t older[CONTEXT_MAX_ANCESTORS];	/* pages, by index of the preamble's ancestors */
	struct compression_count compression[CONTEXT_COMPRESSIONS];
	uint64_t bytes;				/* of the file */
	uint64_t id;
};

/*
 * Reads to the trailer, verifying everything, and counts.  0 or -errno with a message; on an
 * error nothing is left to free.
 */
int summary_read(struct context_reader *r, const struct context *c, struct summary *out);
void summary_free(struct summary *s);

/* All pages of the mapping that are saved here, but for shared ones and duplicates. */
uint64_t summary_saved(const struct summary_mapping *m);

#endif /* KCR_IMAGE_SUMMARY_H */
