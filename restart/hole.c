// SPDX-License-Identifier: GPL-2.0
/*
 * Address ranges and the gaps between them; see hole.h.
 */
#include "restart/hole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"
#include "report/report.h"

#define PAGE_MASK	4095ull
#define MARGIN		(1ull << 20)	/* kept free on both sides of a hole */

int ranges_add(struct ranges *r, struct range range)
{
	if (r->count == r->capacity) {
		size_t capacity = r->capacity ? 2 * r->capacity : 64;
		struct range *larger = realloc(r->at, capacity * sizeof(*larger));

		if (!larger)
			return report_errno(-ENOMEM, "the map of an address space");
		r->at = larger;
		r->capacity = capacity;
	}
	r->at[r->count++] = range;
	return 0;
}

void ranges_free(struct ranges *r)
{
	free(r->at);
	memset(r, 0, sizeof(*r));
}

int ranges_self(struct ranges *r)
{
	FILE *maps = proc_stream(PROC_SELF, "maps");
	char line[512];
	int err = 0;

	if (!maps)
		return report_errno(-errno, "cannot open /proc/self/maps");
	while (!err && fgets(line, sizeof(line), maps)) {
		struct range range = { 0 };

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &range.start, &range.end) != 2)
			continue;
		/* [vsyscall] is the kernel's. */
		if (range.start >= HOLE_HIGHEST)
			continue;
		range.text = strstr(line, "[vdso]");
		range.vdso = range.text || strstr(line, "[vvar");
		err = ranges_add(r, range);
	}
	fclose(maps);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int hole_find(struct ranges *busy, uint64_t length, uint64_t *start)
{
	uint64_t best = 0, best_length = 0, free_from = HOLE_LOWEST;

	if (busy->count)
		qsort(busy->at, busy->count, sizeof(*busy->at), compare);
	for (size_t i = 0; i <= busy->count; i++) {
		uint64_t free_to = i < busy->count ? busy->at[i].start : HOLE_HIGHEST;

		if (free_to > free_from && free_to - free_from > best_length) {
			best = free_from;
			best_length = free_to - free_from;
		}
		if (i < busy->count && busy->at[i].end > free_from)
			free_from = busy->at[i].end;
	}
	length = (length + PAGE_MASK) & ~PAGE_MASK;
	if (best_length < length + 2 * MARGIN)
		return report_fail(-ENOMEM, "the address space of a process has no room for the "
				   "%" PRIu64 " bytes that its restart needs", length);
	*start = (best + (best_length - length) / 2) & ~PAGE_MASK;
	return 0;
}
