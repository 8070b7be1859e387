/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moves pages from a source (a stopped process, a context file) to a sink (a
 * context file, a rebuilt process), a chunk at a time.  pipeline.c decides how:
 * directly between the module and the file, or through worker threads that
 * compress, decompress, checksum and choose pages.
 *
 * Source and sink are only called by the thread that called pages_move(), unless the source is
 * `concurrent`, or the sink `unordered`.
 * Functions return 0 or -errno with a message.
 */
#ifndef KCR_IMAGE_PAGES_H
#define KCR_IMAGE_PAGES_H

#include "image/compression.h"
#include "image/context.h"

struct chooser;

struct page_source {
	const struct page_source_ops *ops;
};

struct page_source_ops {
	/* Workers may call load() for any chunks at a time, while the caller calls what it likes. */
	bool concurrent;
	/*
	 * The next chunk: pid, runs (valid until the next call), nr_pages and, from a
	 * file, compression, length and position.  1, 0: no more, or -errno.  Of a `picked`
	 * one the sieve verifies the pages, and nobody the sum.
	 */
	int (*next)(struct page_source *source, struct context_chunk *chunk);
	/*
	 * Its data into `buffer`, of CONTEXT_CHUNK_BYTES.  From a file: as stored, with
	 * their checksum in *sum; from a process *sum is not set, and the chunk may be a
	 * part of the last one.  Nothing if it is `unwritten`: then it is for the sieve.
	 */
	int (*load)(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		    uint64_t *sum);
	/* Writes its pages (nr_pages × 4096 bytes) to a file descriptor; or NULL. */
	int (*send)(struct page_source *source, const struct context_chunk *chunk, int fd,
		    uint64_t *sum);
	/* File descriptor to read this chunk's raw pages from, -1: none; or NULL. */
	int (*begin)(struct page_source *source);
	/* All were read from it, with this XXH64; result -ENODATA: it ended too early. */
	int (*end)(struct page_source *source, int result, uint64_t sum);
	/* Reports that data from load() are damaged; returns -errno.  Or NULL. */
	int (*damaged)(struct page_source *source, const struct context_chunk *chunk,
		       const char *what);
};

struct page_sink {
	const struct page_sink_ops *ops;
};

struct page_sink_ops {
	/*
	 * Chunks may come in any order, and from worker threads as soon as they are ready;
	 * still, there is one call at a time.
	 */
	bool unordered;
	/* Stores the chunk's data, with their checksum. */
	int (*store)(struct page_sink *sink, const struct context_chunk *chunk);
	/* File descriptor to write raw pages of this chunk to, or -errno; or NULL. */
	int (*begin)(struct page_sink *sink, const struct context_chunk *chunk);
	/* All were written to it, with this XXH64. */
	int (*end)(struct page_sink *sink, uint64_t sum);
	/* Reads raw pages from a file descriptor; -ENODATA: it ended too early.  Or NULL. */
	int (*fill)(struct page_sink *sink, const struct context_chunk *chunk, int fd,
		    uint64_t *sum);
};

/* Room for the table of a chunk. */
struct page_table {
	struct context_table table;	/* runs, hash and owner point below; pages 0: none */
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct context_hash hash[CONTEXT_CHUNK_PAGES];
	uint16_t owner[CONTEXT_CHUNK_PAGES];
};

/*
 * Chooses which pages of a chunk go on to the sink.  Called by worker threads, several
 * at a time.
 */
struct page_sieve {
	const struct page_sieve_ops *ops;
};

struct page_sieve_ops {
	/*
	 * keep[i]: page i of the chunk, whose data are pages, goes on (all do, at first).
	 * For a sink that writes tables, *table may be filled in: it has room for a
	 * chunk and the chunk's runs.  0, -EINVAL (a page is not what it was) or another
	 * -errno, silently.
	 */
	int (*sift)(struct page_sieve *sieve, const struct context_chunk *chunk, bool *keep,
		    struct page_table *table);
};

enum pages_work {
	PAGES_ENCODE,		/* from pages to the stored form */
	PAGES_DECODE,		/* and back; checksums are verified */
	PAGES_RECODE,		/* from one stored form to another, verified */
};

struct pages_flow {
	struct page_source *source;
	struct page_sink *sink;
	enum pages_work work;
	struct compression compression;	/* for ENCODE and RECODE */
	struct chooser *chooser;	/* chooses it instead; for ENCODE; or NULL */
	struct compression_count *count;	/* for ENCODE and RECODE: added to, by kind; or NULL */
	/* Or NULL.  Chunks that go directly from a file to the module do not pass it. */
	struct page_sieve *sieve;
	/*
	 * Is this chunk, of a file, left where it is?  The caller has to see to it that its
	 * needed pages get where they belong later.  Or NULL.
	 */
	bool (*defer)(void *arg, const struct context_chunk *chunk);
	void *defer_arg;
	/* Called after each chunk of the source, as that has given it; or NULL. */
	void (*progress)(void *arg, const struct context_chunk *chunk);
	void *progress_arg;
};

/* Moves all chunks.  After an error the sink may have received some of them. */
int pages_move(const struct pages_flow *flow);

/* How many processors work on them. */
unsigned int pages_processors(void);

/* ---- a context file as source or sink: file_pages.c --------------------------------- */

struct context_page_source {
	struct page_source source;
	struct context_reader *reader;
	struct page_map *map;		/* gets the tables, or NULL */
	uint64_t nr_elsewhere;		/* sections so far */
};

struct context_page_sink {
	struct page_sink sink;
	struct context_writer *writer;
};

/*
 * All MEMORY sections that follow, and ELSEWHERE ones, whose chunks must be deferred; only tables
 * may be among them, and DUPLICATES sections, which are left to the reader, or the trailer come
 * after them.
 */
void context_page_source(struct context_page_source *s, struct context_reader *reader);
void context_page_sink(struct context_page_sink *s, struct context_writer *writer);

#endif /* KCR_IMAGE_PAGES_H */
