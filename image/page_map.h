/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tables of one context file in memory: which pages its processes had, where they
 * are, and their hashes.  It takes 18 bytes per page.
 */
#ifndef KCR_IMAGE_PAGE_MAP_H
#define KCR_IMAGE_PAGE_MAP_H

#include "image/context.h"

struct page_map;

/* NULL: no memory. */
struct page_map *page_map_new(void);
void page_map_free(struct page_map *m);

/* Takes a TABLE section.  0 or -ENOMEM with a message. */
int page_map_add(struct page_map *m, const struct context_item *item);
/*
 * After the last one, and before any call below: 0, or -EINVAL with a message if the
 * tables of `name` describe a page twice.
 */
int page_map_finish(struct page_map *m, const char *name);

/* The hash of a page's 4096 bytes, as tables have it. */
struct context_hash page_hash(const void *page);

/* Makes searches for neighbouring pages fast.  Begins as 0; one for each thread. */
typedef size_t page_cursor;

/* A page's number, for the calls below; SIZE_MAX: there is none in the tables. */
size_t page_map_find(const struct page_map *m, page_cursor *cursor, int32_t pid,
		     uint64_t address);
/*
 * How many pages, of nr_pages from this one on, are in the tables or not, as it is: *page: its number,
 * which the others follow; SIZE_MAX: they are not.  At least 1, and perhaps less than there are.
 */
uint64_t page_map_span(const struct page_map *m, page_cursor *cursor, int32_t pid, uint64_t address,
		       uint64_t nr_pages, size_t *page);
unsigned int page_map_owner(const struct page_map *m, size_t page);
/* Of this page and those behind it. */
const uint16_t *page_map_owners(const struct page_map *m, size_t page);
const struct context_hash *page_map_hashes(const struct page_map *m, size_t page);
/* Has it this hash? */
bool page_map_matches(const struct page_map *m, size_t page, const struct context_hash *hash);

/* How many pages this file of the chain has to give. */
uint64_t page_map_owned(const struct page_map *m, unsigned int owner);

#endif /* KCR_IMAGE_PAGE_MAP_H */
