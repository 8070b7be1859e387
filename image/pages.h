/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages on their way: from a source (a process that stands still, a context file)
 * to a sink (a context file, a rebuilt process), a chunk at a time.  pipeline.c
 * moves them, and is where it is decided how: straight between the module and the
 * file, or through worker threads that compress, decompress and sum.
 *
 * The ends are called by the thread that called pages_move() alone.  Functions
 * return 0 or -errno with a message.
 */
#ifndef KCR_IMAGE_PAGES_H
#define KCR_IMAGE_PAGES_H

#include "image/context.h"

struct page_source {
	const struct page_source_ops *ops;
};

struct page_source_ops {
	/*
	 * What comes next: pid, runs (valid until the next call), nr_pages and, from a
	 * file, compression, length and position.  1, 0: no more, or -errno.
	 */
	int (*next)(struct page_source *source, struct context_chunk *chunk);
	/*
	 * Its data into `buffer`, of CONTEXT_CHUNK_BYTES; *sum: as stored, from a file;
	 * 0 means nothing if pages come from a process.
	 */
	int (*load)(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		    uint64_t *sum);
	/* Its pages, which are many × 4096 bytes, to a descriptor; or NULL. */
	int (*send)(struct page_source *source, const struct context_chunk *chunk, int fd,
		    uint64_t *sum);
	/* A descriptor from which just now raw pages can be read, -1: none; or NULL. */
	int (*begin)(struct page_source *source);
	/* All of them were read from there, and their XXH64 is this; -ENODATA: it ended. */
	int (*end)(struct page_source *source, int result, uint64_t sum);
	/* What load() gave is not what it should be: reports it; returns -errno.  Or NULL. */
	int (*damaged)(struct page_source *source, const struct context_chunk *chunk,
		       const char *what);
};

struct page_sink {
	const struct page_sink_ops *ops;
};

struct page_sink_ops {
	/* Takes the chunk's data, with their sum. */
	int (*store)(struct page_sink *sink, const struct context_chunk *chunk);
	/* A descriptor to which raw pages of this chunk may be written, or -errno; or NULL. */
	int (*begin)(struct page_sink *sink, const struct context_chunk *chunk);
	/* They were, and this is their XXH64. */
	int (*end)(struct page_sink *sink, uint64_t sum);
	/* Raw pages from a descriptor; -ENODATA: it ended before.  Or NULL. */
	int (*fill)(struct page_sink *sink, const struct context_chunk *chunk, int fd,
		    uint64_t *sum);
};

enum pages_work {
	PAGES_ENCODE,		/* pages become what is stored */
	PAGES_DECODE,		/* and back; sums are verified */
};

struct pages_flow {
	struct page_source *source;
	struct page_sink *sink;
	enum pages_work work;
	enum context_compression compression;	/* for ENCODE */
	/* After each chunk that the source gave, with its pages; or NULL. */
	void (*progress)(void *arg, uint64_t nr_pages);
	void *progress_arg;
};

/* Moves all chunks.  After an error the sink has got some of them. */
int pages_move(const struct pages_flow *flow);

/* ---- the ends at a context file: file_pages.c --------------------------------------- */

struct context_page_source {
	struct page_source source;
	struct context_reader *reader;
};

struct context_page_sink {
	struct page_sink sink;
	struct context_writer *writer;
};

/* All MEMORY sections that follow; nothing but the trailer may come behind them. */
void context_page_source(struct context_page_source *s, struct context_reader *reader);
void context_page_sink(struct context_page_sink *s, struct context_writer *writer);

#endif /* KCR_IMAGE_PAGES_H */
