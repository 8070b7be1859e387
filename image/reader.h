/* SPDX-License-Identifier: GPL-2.0 */
/* The state of a reader, for reader.c and load.c. */
#ifndef KCR_IMAGE_READER_H
#define KCR_IMAGE_READER_H

#include "section.h"

struct reader_buffer {
	uint8_t *data;
	size_t capacity;
};

struct context_reader {
	int fd;
	uint64_t base;			/* offset at which the file begins in fd, if it has offsets */
	bool positioned;		/* read at offsets; the descriptor's own stays */
	int error;			/* the first failure: later calls return it too */
	char *name;
	uint64_t id;
	uint64_t features;		/* CONTEXT_HAS_* */
	bool partial;			/* pages may be elsewhere */
	enum context_skim skim;
	uint64_t position;		/* bytes taken from fd */
	uint64_t sections;		/* heads seen */
	uint64_t pages;
	uint32_t last_type;
	uint64_t start;			/* of the current section */
	bool head_valid;		/* for messages */
	bool next_read;			/* next_head was read along with a tail */
	bool data_follow;		/* pages of a memory section not taken yet */
	bool unshared;			/* a memory section without sharers was read */
	struct context_sharer *sharer;	/* of the memory section that follows, or is current */
	size_t nr_sharers;
	bool held;			/* the next context_read() returns item (again) */
	int last_result;		/* that reader_next() returned with it */
	struct section_head head;	/* of the current section */
	struct section_head next_head;
	struct reader_buffer meta;	/* and its padding */
	struct reader_buffer data;
	size_t room;			/* bytes of memory that messages may still take */
	struct codec *codec;
	struct context_item item;
	unsigned int nr_ancestors;	/* set by context_load() */
	const struct context *context;	/* set by context_load(): checks references */
};

/* Reads the next section into r->item; result as of context_read(). */
int reader_next(struct context_reader *r);
/* ---- for read_memory.c: 0 or -errno, recorded in r->error ---- */

/* The section whose head was read; a memory section's pages follow. */
int reader_take_memory(struct context_reader *r, struct context_item *item);
int reader_take_table(struct context_reader *r, struct context_item *item);
int reader_take_duplicates(struct context_reader *r, struct context_item *item);
/* What all kinds begin with, verified; `page_bytes` of the meta follow for each page. */
int reader_take_runs(struct context_reader *r, struct context_item *item, size_t page_bytes);
/* Notes what a SHARED section says of the next memory section.  shared.c */
int reader_take_sharer(struct context_reader *r);
/* Adds that to the item of a memory section, or refuses what is in a wrong place. */
int reader_settle_sharers(struct context_reader *r, struct context_item *item);
/* Forgets it. */
void reader_drop_sharers(struct context_reader *r);
/* Reads `length` bytes, not fewer. */
int reader_exactly(struct context_reader *r, void *data, size_t length);
/* … into a buffer that grows with the data that arrive, not with `length`. */
int reader_growing(struct context_reader *r, struct reader_buffer *b, size_t length);
/*
 * After the data: *sum is the checksum that they must have.  The next section's
 * head, which always exists, is read along with the tail.
 */
int reader_tail(struct context_reader *r, uint64_t *sum);
/* The same, for data with the checksum `sum`. */
int reader_check_tail(struct context_reader *r, uint64_t sum);
int reader_no_memory(struct context_reader *r);
/* "it ends WHERE byte N" */
int reader_truncated(struct context_reader *r, const char *where);

/* Refuses the file: "NAME: damaged context file: WHAT (SECTION at byte N)". */
int reader_damaged(struct context_reader *r, const char *what);

#endif /* KCR_IMAGE_READER_H */
