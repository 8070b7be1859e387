/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where in an image, or in the files of a chain, each page is: for readers that take the
 * pages in any order.  The files are regular ones and stay open.  It takes some 32 bytes
 * for each run of pages.
 */
#ifndef KCR_IMAGE_PAGE_INDEX_H
#define KCR_IMAGE_PAGE_INDEX_H

#include "image/chain.h"
#include "image/context.h"

/* A section of pages, in the order of the files. */
struct index_chunk {
	int32_t pid;
	uint32_t nr_pages;
	uint64_t first;			/* number of its first page, among those of all chunks */
	uint64_t needed;		/* pages of it that no other chunk has newer */
};

/* Pages that are together in the process and in the chunk, all needed. */
struct index_piece {
	uint64_t address;
	int32_t pid;
	uint32_t nr_pages;
	uint32_t chunk;
	uint32_t offset;		/* of the first one in the chunk, in pages */
};

struct page_index;

/*
 * Reads what the files say of their pages, but not the pages; `last` as for chain_move(),
 * and used up like there.  0 or -errno with a message.
 */
int page_index_read(struct page_index **out, struct context_reader *last,
		    const struct chain *chain);
void page_index_free(struct page_index *x);

size_t page_index_chunks(const struct page_index *x);
const struct index_chunk *page_index_chunk(const struct page_index *x, size_t chunk);
/* Pages of all chunks, needed or not: numbers are below that. */
uint64_t page_index_pages(const struct page_index *x);

/* Sorted by PID and address. */
size_t page_index_pieces(const struct page_index *x);
const struct index_piece *page_index_piece(const struct page_index *x, size_t piece);
/* The numbers of a chunk's pieces, in the order of the chunk. */
const uint32_t *page_index_of_chunk(const struct page_index *x, size_t chunk, size_t *count);
/* The first piece of the process that ends behind the address; their number: none. */
size_t page_index_find(const struct page_index *x, int32_t pid, uint64_t address);
/* The number of a piece's page. */
uint64_t page_index_number(const struct page_index *x, const struct index_piece *piece,
			   uint64_t address);

/*
 * The chunk's pages into `buffer` (CONTEXT_CHUNK_BYTES), decompressed and verified.
 * 0 or -errno with a message: the file is damaged, truncated or cannot be read.  One thread
 * at a time.
 */
int page_index_load(struct page_index *x, size_t chunk, void *buffer);

#endif /* KCR_IMAGE_PAGE_INDEX_H */
