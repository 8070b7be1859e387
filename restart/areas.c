// SPDX-License-Identifier: GPL-2.0
/* A sorted array; see areas.h. */
#include "restart/areas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void areas_free(struct areas *a)
{
	free(a->area);
	*a = (struct areas){ 0 };
}

static int reserve(struct areas *a, size_t more)
{
	size_t capacity = a->capacity;
	struct area *area;

	if (a->count + more <= capacity)
		return 0;
	while (capacity < a->count + more)
		capacity = 2 * capacity + 16;
	area = reallocarray(a->area, capacity, sizeof(*area));
	if (!area)
		return -ENOMEM;
	a->area = area;
	a->capacity = capacity;
	return 0;
}

int areas_copy(struct areas *to, const struct areas *from)
{
	struct areas copy = { 0 };
	int err = reserve(&copy, from->count);

	if (err)
		return err;
	if (from->count)
		memcpy(copy.area, from->area, from->count * sizeof(*copy.area));
	copy.count = from->count;
	areas_free(to);
	*to = copy;
	return 0;
}

/* The first area that ends above `address`. */
static size_t find(const struct areas *a, uint64_t address)
{
	size_t low = 0, high = a->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (a->area[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* There is room for one more. */
static void insert(struct areas *a, size_t at, struct area area)
{
	memmove(&a->area[at + 1], &a->area[at], (a->count - at) * sizeof(area));
	a->area[at] = area;
	a->count++;
}

int areas_add(struct areas *a, uint64_t start, uint64_t end, uint64_t origin)
{
	int err = reserve(a, 1);

	if (!err)
		insert(a, find(a, start), (struct area){ start, end, origin });
	return err;
}

static void cut(struct areas *a, uint64_t start, uint64_t end)
{
	size_t i = find(a, start), n;
	struct area *area = &a->area[i];

	if (i < a->count && area->start < start) {
		struct area rest = { start, area->end, area->origin + (start - area->start) };

		area->end = start;
		insert(a, ++i, rest);
	}
	for (n = i; n < a->count && a->area[n].end <= end; n++)
		;
	memmove(&a->area[i], &a->area[n], (a->count - n) * sizeof(*area));
	a->count -= n - i;
	area = &a->area[i];
	if (i < a->count && area->start < end) {
		area->origin += end - area->start;
		area->start = end;
	}
}

int areas_cut(struct areas *a, uint64_t start, uint64_t end)
{
	int err = reserve(a, 1);

	if (!err && start < end)
		cut(a, start, end);
	return err;
}

int areas_move(struct areas *a, uint64_t from, uint64_t to, uint64_t length)
{
	size_t first = find(a, from), last = first, nr_moved;
	struct area *moved;
	int err;

	while (last < a->count && a->area[last].start < from + length)
		last++;
	nr_moved = last - first;
	moved = calloc(nr_moved + 1, sizeof(*moved));
	err = moved ? reserve(a, nr_moved + 2) : -ENOMEM;
	if (err) {
		free(moved);
		return err;
	}
	for (size_t i = 0; i < nr_moved; i++) {
		struct area area = a->area[first + i];

		if (area.start < from) {
			area.origin += from - area.start;
			area.start = from;
		}
		if (area.end > from + length)
			area.end = from + length;
		moved[i] = (struct area){ area.start - from + to, area.end - from + to, area.origin };
	}
	cut(a, from, from + length);
	cut(a, to, to + length);
	for (size_t i = 0; i < nr_moved; i++)
		insert(a, find(a, moved[i].start), moved[i]);
	free(moved);
	return 0;
}

uint64_t areas_origin(const struct areas *a, uint64_t address)
{
	size_t i = find(a, address);

	if (i == a->count || a->area[i].start > address)
		return AREAS_NONE;
	return a->area[i].origin + (address - a->area[i].start);
}

bool areas_first(const struct areas *a, uint64_t start, uint64_t end, struct area *out)
{
	size_t i = find(a, start);

	if (i == a->count || a->area[i].start >= end)
		return false;
	*out = a->area[i];
	if (out->start < start) {
		out->origin += start - out->start;
		out->start = start;
	}
	out->end = out->end < end ? out->end : end;
	return true;
}

bool areas_place(const struct areas *a, uint64_t origin, uint64_t end, struct area *out)
{
	*out = (struct area){ .origin = end };
	for (size_t i = 0; i < a->count; i++) {
		struct area area = a->area[i];
		uint64_t last = area.origin + (area.end - area.start);

		if (last <= origin || area.origin >= out->origin)
			continue;
		if (area.origin < origin) {
			area.start += origin - area.origin;
			area.origin = origin;
		}
		if (last > end)
			area.end -= last - end;
		*out = area;
	}
	return out->origin < end;
}

/* Adds what the mapping has of the pool, whose areas are origins, each with its address. */
static int take(struct areas *child, struct areas *pool, const struct kcr_faulting_range *range,
		bool unmoved)
{
	uint64_t end = range->origin + (range->end - range->start);
	uint64_t at = range->origin;
	int err = 0;

	while (!err && at < end) {
		size_t i = find(pool, at);
		struct area got;

		if (i == pool->count || pool->area[i].start >= end)
			break;
		got = pool->area[i];
		at = got.end;
		if (unmoved && got.origin - got.start != range->start - range->origin)
			continue;
		if (got.start < range->origin)
			got.start = range->origin;
		if (got.end > end)
			got.end = end;
		err = areas_add(child, got.start - range->origin + range->start,
				got.end - range->origin + range->start, got.start);
		if (!err)
			err = areas_cut(pool, got.start, got.end);
	}
	return err;
}

int areas_inherit(struct areas *child, const struct areas *parent,
		  const struct kcr_faulting_range *range, size_t count)
{
	struct areas pool = { 0 };
	int err = 0;

	areas_free(child);
	for (size_t i = 0; !err && i < parent->count; i++) {
		const struct area *area = &parent->area[i];

		err = areas_add(&pool, area->origin, area->origin + (area->end - area->start),
				area->start);
	}
	/* Where the parent has them is preferred: what it left elsewhere may be empty. */
	for (int moved = 0; moved < 2; moved++)
		for (size_t i = 0; !err && i < count; i++)
			err = take(child, &pool, &range[i], !moved);
	areas_free(&pool);
	return err;
}
