/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An increment: the image holds only pages that differ from those of a parent.  A
 * difference is found by comparing 128-bit hashes, so it does not matter who wrote a
 * page, and when: it works on every kernel, after a restart and for any copy of a
 * process.  Pages that are known not to have been written (changes.h) are not read at
 * all.  A page that is absent (it would be zero, or that of a file) is absent from the
 * tables, too, and costs nothing.
 *
 * Without a parent of its own choice the tool keeps a chain under one name: NAME is
 * always the newest image, and what it was before gets the next name of NAME.1, NAME.2 …
 * The ranks of an MPI job do the same from folder to folder, by hard links.
 */
#ifndef KCR_CHECKPOINT_INCREMENT_H
#define KCR_CHECKPOINT_INCREMENT_H

#include "checkpoint/destination.h"
#include "image/page_map.h"
#include "image/pages.h"

struct checkpoint;
struct increment;

/*
 * If an increment is wanted: finds the parent and reads its tables, and looks whether
 * the older files are there, before anything is stopped.  c->increment stays NULL if none
 * is wanted.  0 or -errno with a message.
 */
int increment_open(struct checkpoint *c);
/*
 * Once the destination is open: its present file will get another name, or older files
 * get links beside it.  0 or -errno with a message.
 */
int increment_set_aside(struct checkpoint *c);
/* When the image has its name: removes a chain that a full image has replaced. */
void increment_committed(struct increment *i);
/* Removes links of what was not committed; NULL is allowed.  The destination is still open. */
void increment_free(struct increment *i, const struct destination *d);

/* NULL is allowed from here on: no increment is wanted. */

/* CONTEXT_HAS_* of the image. */
uint64_t increment_features(const struct increment *i);
/* The image's ancestors; what they point to lives as long as `i`. */
void increment_describe(const struct increment *i, Kcr__Preamble *preamble);
/* The files that the image will need. */
void increment_list_older(const struct increment *i, struct checkpoint_result *result);
/* Drops the pages that the parent has, and makes the tables; or NULL. */
struct page_sieve *increment_sieve(struct increment *i);
/* Pages that were dropped so far, and how many of them were `unwritten`. */
uint64_t increment_unchanged(const struct increment *i);
uint64_t increment_unwritten(const struct increment *i);
/* The parent's description, *id its id.  NULL: the image will be full. */
const struct context *increment_parent(const struct increment *i, uint64_t *id);
/* How many pages, of nr_pages from this one on, has the parent, or has it not (*has)?  At least 1. */
uint64_t increment_span(const struct increment *i, page_cursor *cursor, int32_t pid, uint64_t address,
			uint64_t nr_pages, bool *has);
/* A new attempt begins: none was. */
void increment_again(struct increment *i);

#endif /* KCR_CHECKPOINT_INCREMENT_H */
