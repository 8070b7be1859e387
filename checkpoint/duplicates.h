/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Equal pages of the processes, which the image has once (--dedup).  What a page is equal to is
 * found out on its way to the file, by 128-bit hashes as increments compare them, so pages are
 * read once, and a pipe will do; of which one it is a duplicate is written behind all pages.
 *
 * It takes 43 to 128 bytes of memory for each page that is saved, and 24 to 48 for each duplicate.
 */
#ifndef KCR_CHECKPOINT_DUPLICATES_H
#define KCR_CHECKPOINT_DUPLICATES_H

#include <stdint.h>

#include "image/pages.h"

struct duplicates;

/* NULL: no memory. */
struct duplicates *duplicates_new(void);
/* NULL is allowed from here on: none are looked for. */
void duplicates_free(struct duplicates *d);
/* Drops pages that it has seen before; or NULL. */
struct page_sieve *duplicates_sieve(struct duplicates *d);
/* Once all pages have passed it: writes DUPLICATES sections.  0 or -errno with a message. */
int duplicates_write(struct duplicates *d, struct context_writer *w);
uint64_t duplicates_count(const struct duplicates *d);

#endif /* KCR_CHECKPOINT_DUPLICATES_H */
