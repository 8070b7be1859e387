/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pages that those of DUPLICATES sections are equal to: noted while a context file is read
 * to its end, and taken from it in a second pass.  It takes 24 bytes for each duplicate.
 */
#ifndef KCR_IMAGE_ORIGINALS_H
#define KCR_IMAGE_ORIGINALS_H

#include "image/context.h"

struct originals {			/* begins as zeros */
	struct wanted *wanted;
	size_t count, room;
};

/* Those of a DUPLICATES section.  0 or -ENOMEM with a message. */
int originals_note(struct originals *o, const struct context_item *item);
/*
 * After the trailer: reads the file again and calls `put` for each duplicate, in any order, with
 * its address and contents.  -ESPIPE: it is no regular file; or -errno; with a message.
 */
int originals_read(struct originals *o, const struct context_reader *reader,
		   int (*put)(void *arg, uint64_t address, const void *page), void *arg);
void originals_free(struct originals *o);

#endif /* KCR_IMAGE_ORIGINALS_H */
