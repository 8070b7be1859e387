/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages are where they were when the parent was made?
 *
 * mremap(2) may move page tables as a whole, without a trace of it in their entries.  But
 * a page keeps its origin, the place of its mapping when it was first touched
 * (KCR_VMAS_ORIGINS).  So an unwritten page is the one that the parent has at this
 * address if its origin was that of one mapping only at that time, and that mapping
 * was here.
 */
#ifndef KCR_CHECKPOINT_ORIGINS_H
#define KCR_CHECKPOINT_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/context.h"

struct origin_range;

/* The address ranges of one memory map whose pages had an origin of their own. */
struct origins {
	struct origin_range *range;	/* sorted by address */
	size_t nr_ranges;
};

/*
 * Reads the memory map of the parent's process; NULL: it has none, and no page is known.
 * 0 or -ENOMEM.  origins_free() frees them, also after an error.
 */
int origins_find(struct origins *o, const Kcr__Mm *parent);
void origins_free(struct origins *o);

/*
 * Was the page at `address` with this origin (both in bytes) at this address then?  *end,
 * initially the end of the mapping: the answer is the same from there to here.
 */
bool origins_same(const struct origins *o, uint64_t address, uint64_t origin, uint64_t *end);

#endif /* KCR_CHECKPOINT_ORIGINS_H */
