/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compression of memory chunks (compress.c).  Used by the reader, and by the
 * threads of pipeline.c, with one codec per slot.
 */
#ifndef KCR_IMAGE_CODEC_H
#define KCR_IMAGE_CODEC_H

#include <stddef.h>
#include <sys/types.h>

#include "compression.h"
#include "context.h"

struct codec;			/* the libraries' contexts; for one thread at a time */

struct codec *codec_new(void);
void codec_free(struct codec *c);

/*
 * Compresses `length` bytes into `out`, of the same size, in one way (never `adaptive`).
 * Returns the length of the result, or 0 if it would not be shorter (store it raw), or
 * -errno.
 */
ssize_t codec_compress(struct codec *c, const struct compression *how, const void *data,
		       size_t length, void *out);
/* -EINVAL unless the result is exactly `length` bytes. */
int codec_decompress(struct codec *c, enum context_compression how, const void *data,
		     size_t stored, void *out, size_t length);

#endif /* KCR_IMAGE_CODEC_H */
