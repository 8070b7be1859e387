/* SPDX-License-Identifier: GPL-2.0 */
/* How memory is to be compressed, and what has come of it. */
#ifndef KCR_IMAGE_COMPRESSION_H
#define KCR_IMAGE_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "image/context.h"

#define CONTEXT_COMPRESSIONS	3	/* kinds, CONTEXT_RAW is one */

struct compression {
	enum context_compression kind;
	int level;			/* 1 or more, or negative: faster; 0: the usual one */
	bool adaptive;			/* chosen chunk by chunk (image/chooser.h): the rest counts not */
};

/* Chunks that were stored in one way. */
struct compression_count {
	uint64_t chunks;
	uint64_t bytes;			/* of their pages … */
	uint64_t stored;		/* … and as they are in the file */
};

extern const char *const compression_names[CONTEXT_COMPRESSIONS];

/* The lowest and the highest level of a kind that is not CONTEXT_RAW; 0 is none. */
void compression_levels(enum context_compression kind, int *least, int *most);

#endif /* KCR_IMAGE_COMPRESSION_H */
