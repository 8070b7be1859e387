/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that the kernel writes to while threads enter, before memory is filled: those of their
 * restartable sequences (rseq(2)), whose registration stores the number of the processor.  If
 * huge pages are allowed there, all pages around may come into being with them.
 */
#ifndef KCR_RESTART_EARLY_PAGES_H
#define KCR_RESTART_EARLY_PAGES_H

#include "image/context.h"

struct early_page {
	int32_t pid;			/* the saved one of the process that has the memory's description */
	uint64_t address;
};

/* In the order of PID and address. */
struct early_pages {
	struct early_page *at;
	size_t count;
};

/* Those of all processes, or only of the memory of `only`.  0 or -ENOMEM, reported. */
int early_pages_find(struct early_pages *e, const struct context *c, const Kcr__Process *only);
/* The first one at this address of the process or above; UINT64_MAX: there is none. */
uint64_t early_pages_next(const struct early_pages *e, int32_t pid, uint64_t address);
void early_pages_free(struct early_pages *e);

#endif /* KCR_RESTART_EARLY_PAGES_H */
