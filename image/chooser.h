/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Adaptive compression: none, LZ4 or Zstandard for each chunk, whichever has the bytes at
 * their destination first.  It depends on how fast the destination takes them (rate.h), and on
 * how fast and how well the chunk compresses, for which a few of its pages are compressed.
 *
 * For the thread that loads and stores chunks; workers only measure.
 */
#ifndef KCR_IMAGE_CHOOSER_H
#define KCR_IMAGE_CHOOSER_H

#include "image/compression.h"
#include "image/rate.h"

struct page_source;
struct chooser;

/* What is expected of a chunk: of each page byte … */
struct chooser_guess {
	double cost;			/* time of a worker, in ns */
	double ratio;			/* … bytes that are left */
};

/* What the choice depends on. */
struct chooser_costs {
	double load, store;		/* ns per byte; store < 0: not known yet … */
	double alone;			/* … if nothing is compressed meanwhile; likewise */
	struct chooser_guess guess[CONTEXT_COMPRESSIONS];	/* cost 0: not to be chosen */
	unsigned int processors;
	bool direct;			/* uncompressed, they need not be loaded */
};

/* A chunk's compression, and what it was chosen for. */
struct chooser_choice {
	struct compression how;
	struct chooser_guess guess;	/* cost 0: none */
};

/* Chunks go to `fd`.  0, or -errno with a message. */
int chooser_new(struct chooser **out, int fd, unsigned int processors);
void chooser_free(struct chooser *c);

/* See rate.h. */
struct rate *chooser_rate(struct chooser *c);

/*
 * To compress takes processors, and so may slow the destination down: it has to be seen without.
 * Is it time for that?  Then so many pages of a chunk are to be stored uncompressed, with
 * nothing else going on, until it is not.
 */
#define CHOOSER_PROBE	64u
bool chooser_probe_is_due(const struct chooser *c);
void chooser_probed(struct chooser *c);

/*
 * Chooses for a chunk that source->ops->load() can load, as a whole or other pages of its
 * runs.  0, or -errno with a message.
 */
int chooser_choose(struct chooser *c, struct page_source *source, const struct context_chunk *chunk,
		   bool direct, struct chooser_choice *out);

/* What it was like: loading, and compressing `bytes` to `stored` (0: in vain). */
void chooser_loaded(struct chooser *c, uint64_t bytes, uint64_t ns);
void chooser_compressed(struct chooser *c, const struct chooser_choice *choice, uint64_t bytes,
			uint64_t stored, uint64_t ns);

/* The choice itself. */
enum context_compression chooser_best(const struct chooser_costs *costs);

#endif /* KCR_IMAGE_CHOOSER_H */
