/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that an image leaves out (a partial one: image/context.h), as it is large and would keep the
 * stopped processes waiting.  Its pages are read from the module's copies of the address
 * spaces, which are there until the processes run on or, once they have ended, for as long as we
 * want.
 */
#ifndef KCR_CHECKPOINT_POSTPONED_H
#define KCR_CHECKPOINT_POSTPONED_H

#include <stdint.h>

struct postponed;

/* For one checkpoint after the other; NULL: no memory. */
struct postponed *postponed_new(void);
/* NULL is allowed. */
void postponed_free(struct postponed *p);

/* Pages that the last image has left out. */
uint64_t postponed_pages(const struct postponed *p);
/*
 * Reads nr_pages pages (CONTEXT_FETCH_PAGES at most) from page `first` of an ELSEWHERE section on,
 * from when options->ready is called, in any thread.  0; -EINVAL: there are none such;
 * -ENODATA: they are not there any more; or another -errno.
 */
int postponed_read(struct postponed *p, uint64_t number, uint32_t first, uint32_t nr_pages,
		   void *buffer);

#endif /* KCR_CHECKPOINT_POSTPONED_H */
