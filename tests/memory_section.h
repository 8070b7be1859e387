/* SPDX-License-Identifier: GPL-2.0 */
/* A memory section from pages at hand, for tests that write context files. */
#ifndef KCR_TESTS_MEMORY_SECTION_H
#define KCR_TESTS_MEMORY_SECTION_H

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "image/codec.h"
#include "image/context.h"

static inline int section_write_packed(struct context_writer *w, struct context_chunk *chunk,
				       struct codec *codec, void *packed,
				       enum context_compression how)
{
	ssize_t length = 0;

	if (how != CONTEXT_RAW)
		length = codec_compress(codec, &(struct compression){ .kind = how }, chunk->data,
					chunk->length, packed);
	if (length < 0)
		return length;
	if (length) {
		chunk->compression = how;
		chunk->data = packed;
		chunk->length = length;
	}
	chunk->sum = XXH64(chunk->data, chunk->length, 0);
	return context_write_chunk(w, chunk);
}

/* `data` has the pages of all runs; stored raw if compression does not make it shorter. */
static inline int section_write(struct context_writer *w, int32_t pid, const struct kcr_run *runs,
				size_t nr_runs, const void *data, enum context_compression how)
{
	struct context_chunk chunk = {
		.pid = pid, .runs = runs, .nr_runs = nr_runs, .data = data,
	};
	struct codec *codec = codec_new();
	void *packed = malloc(CONTEXT_CHUNK_BYTES);
	int err = -ENOMEM;

	for (size_t i = 0; i < nr_runs && i < CONTEXT_CHUNK_RUNS; i++)
		chunk.nr_pages += runs[i].nr_pages;
	chunk.length = chunk.nr_pages * CONTEXT_PAGE;
	if (chunk.length > CONTEXT_CHUNK_BYTES)
		err = -EINVAL;
	else if (codec && packed)
		err = section_write_packed(w, &chunk, codec, packed, how);
	free(packed);
	codec_free(codec);
	return err;
}

#endif /* KCR_TESTS_MEMORY_SECTION_H */
