/* SPDX-License-Identifier: GPL-2.0 */
/* One full image from a chain; see merge.c. */
#ifndef KCR_IMAGE_MERGE_H
#define KCR_IMAGE_MERGE_H

#include "image/chain.h"

/*
 * Writes the image whose context was just loaded from `last`, with all pages of its chain
 * (NULL: it is full), as a new file to `fd`.  Memory needed: a few chunks, and 2 bytes
 * per page.  0 or -errno with a message.
 */
int merge_write(struct context_reader *last, const struct context *context,
		const struct chain *chain, enum context_compression compression, int fd);

#endif /* KCR_IMAGE_MERGE_H */
