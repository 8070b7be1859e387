/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chunks of a context file, or of a chain, that are left where they are until somebody needs
 * a page of them; then their section is read and verified.  Those of a partial file come from
 * elsewhere, in the same way.
 */
#ifndef KCR_IMAGE_DEFERRED_H
#define KCR_IMAGE_DEFERRED_H

#include "image/chain.h"
#include "image/context.h"

struct deferred_chunk {
	int32_t pid;
	unsigned int member;		/* the file's number in the chain */
	uint64_t position, sequence;	/* of its section there … */
	bool elsewhere;			/* … or, if it is elsewhere: */
	uint64_t number;		/* of its ELSEWHERE section, */
	uint32_t first;			/* and of its first page there */
	struct kcr_run *runs;		/* the pages that it has to give */
	size_t nr_runs;
	uint64_t nr_pages;
};

/* Where the chunks are that are not in a file.  For several threads at a time. */
struct elsewhere {
	/*
	 * Gets nr_pages pages (CONTEXT_FETCH_PAGES at most) from page `first` of an ELSEWHERE section
	 * on, verified: 0 or -errno with a message.  May take as long as the one who has them
	 * likes, but not after end().
	 */
	int (*fetch)(struct elsewhere *e, uint64_t number, uint32_t first, uint32_t nr_pages,
		     void *buffer);
	/* No more are wanted: either all that is needed was `loaded`, or there is nobody any more. */
	void (*end)(struct elsewhere *e, bool loaded);
};

struct deferred;
struct deferred_reader;

/*
 * Is such a mapping (KCR_VMA_*, bytes; without a file) one whose pages may be left, and are
 * worth it?  What is small is read sooner than it is asked for.
 */
bool deferred_suits(uint64_t vma_flags, uint64_t length);

/*
 * The file is that of `last`, called `name`, the older ones are those of `chain` (NULL: there
 * are none).  All must be regular files, and are duplicated.  elsewhere: NULL: nothing is.  0 or
 * -errno with a message.
 */
int deferred_new(struct deferred **out, const struct context_reader *last, const char *name,
		 const struct chain *chain, struct elsewhere *elsewhere);
void deferred_free(struct deferred *d);

/* Notes the needed pages of a chunk, as pages_flow.defer gets it.  -ENOMEM, silently. */
int deferred_add(struct deferred *d, const struct context_chunk *chunk);
/* After the last one, and before any call below.  -ENOMEM, silently. */
int deferred_finish(struct deferred *d);

/* Some of them may be elsewhere. */
bool deferred_is_partial(const struct deferred *d);
/* Does one page come, if any is elsewhere?  0 or -errno with a message. */
int deferred_try(const struct deferred *d);
/* Does what elsewhere->end() does, if some may be there. */
void deferred_end(const struct deferred *d, bool loaded);

size_t deferred_count(const struct deferred *d);
const struct deferred_chunk *deferred_at(const struct deferred *d, size_t index);
/* The number of the chunk with this page of a process; SIZE_MAX: none has it. */
size_t deferred_find(const struct deferred *d, int32_t pid, uint64_t address);

/* Reads chunks, in any order; each thread has its own.  NULL: no memory. */
struct deferred_reader *deferred_reader_new(const struct deferred *d);
void deferred_reader_free(struct deferred_reader *r);
/*
 * Reads the chunk's pages, one after the other, into `buffer`, of CONTEXT_CHUNK_BYTES.  0 or
 * -errno with a message; -EINVAL: the section is not what it was, or damaged.
 */
int deferred_load(struct deferred_reader *r, const struct deferred_chunk *chunk, void *buffer);

#endif /* KCR_IMAGE_DEFERRED_H */
