/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the pages of an image are in a process whose memory is still being loaded: ranges of
 * its address space, each with the address that its first page has in the image.  They follow
 * what the program does to its mappings; what is not in them any more is not to be loaded.
 */
#ifndef KCR_RESTART_AREAS_H
#define KCR_RESTART_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/kcr.h>

struct area {
	uint64_t start, end;
	uint64_t origin;
};

struct areas {
	struct area *area;		/* by address, not overlapping */
	size_t count, capacity;
};

#define AREAS_NONE	UINT64_MAX

void areas_free(struct areas *a);
/* Functions that return int give 0 or -ENOMEM; then the areas are as they were. */
int areas_copy(struct areas *to, const struct areas *from);
/* Adds a range that overlaps none. */
int areas_add(struct areas *a, uint64_t start, uint64_t end, uint64_t origin);
/* The range is no part of them any more. */
int areas_cut(struct areas *a, uint64_t start, uint64_t end);
/* What was at `from` is at `to` now, instead of what was there. */
int areas_move(struct areas *a, uint64_t from, uint64_t to, uint64_t length);

/* The address in the image of what is at `address`; AREAS_NONE: nothing of it. */
uint64_t areas_origin(const struct areas *a, uint64_t address);
/* The first part of [start, end) that is in one; false: none is. */
bool areas_first(const struct areas *a, uint64_t start, uint64_t end, struct area *out);
/* The first part of [origin, end) of the image that is anywhere: false: none is. */
bool areas_place(const struct areas *a, uint64_t origin, uint64_t end, struct area *out);

/*
 * The areas of a child, which has `count` mappings for them: those of its parent, which may
 * have moved some meanwhile, or have a second, empty mapping of the same origin.
 */
int areas_inherit(struct areas *child, const struct areas *parent,
		  const struct kcr_faulting_range *range, size_t count);

#endif /* KCR_RESTART_AREAS_H */
