/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address ranges, and finding free ones: what a restart maps in a process for
 * its own use must overlap neither cr_restart's mappings nor those of the
 * program being rebuilt.
 */
#ifndef KCR_RESTART_HOLE_H
#define KCR_RESTART_HOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/address.h"

/* Bounds of a hole. */
#define HOLE_LOWEST	0x10000ull
#define HOLE_HIGHEST	ARCH_USER_END

struct range {
	uint64_t start;
	uint64_t end;
	bool vdso;			/* [vdso], [vvar] … of ranges_self() */
	bool text;			/* [vdso] itself */
};

struct ranges {
	struct range *at;
	size_t count;
	size_t capacity;
};

int ranges_add(struct ranges *r, struct range range);
void ranges_free(struct ranges *r);

/* Appends the calling process's own mappings. -errno, reported. */
int ranges_self(struct ranges *r);

/*
 * A free range of `length` bytes, page aligned, in the middle of the largest
 * gap between the ranges, so that stacks and heaps keep room to grow.
 * Sorts `busy`.  -ENOMEM, reported: there is none.
 */
int hole_find(struct ranges *busy, uint64_t length, uint64_t *start);

#endif /* KCR_RESTART_HOLE_H */
