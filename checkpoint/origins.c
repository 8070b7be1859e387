// SPDX-License-Identifier: GPL-2.0
#include "checkpoint/origins.h"

#include <errno.h>
#include <stdlib.h>

struct origin_range {
	uint64_t start, end;
	uint64_t shift;			/* origin - address, modulo 2^64 */
};

static int by_origin(const void *a, const void *b)
{
	const Kcr__Vma *const *x = a, *const *y = b;

	return ((*x)->origin > (*y)->origin) - ((*x)->origin < (*y)->origin);
}

static int by_address(const void *a, const void *b)
{
	const struct origin_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static uint64_t origin_end(const Kcr__Vma *v)
{
	return v->origin + (v->end - v->start);
}

/* Keeps the origins that no other mapping has; vma: sorted by origin. */
static void keep_unique(struct origins *o, const Kcr__Vma *const *vma, size_t count)
{
	uint64_t reached = 0;

	for (size_t i = 0; i < count; i++) {
		const Kcr__Vma *v = vma[i];
		uint64_t from = v->origin > reached ? v->origin : reached, to = origin_end(v);

		reached = to > reached ? to : reached;
		if (i + 1 < count && vma[i + 1]->origin < to)
			to = vma[i + 1]->origin;
		if (from >= to)
			continue;
		o->range[o->nr_ranges++] = (struct origin_range){
			.start = from - v->origin + v->start, .end = to - v->origin + v->start,
			.shift = v->origin - v->start,
		};
	}
	qsort(o->range, o->nr_ranges, sizeof(*o->range), by_address);
}

int origins_find(struct origins *o, const Kcr__Mm *parent)
{
	const Kcr__Vma **vma;
	size_t count = 0;

	*o = (struct origins){};
	if (!parent)
		return 0;
	vma = calloc(parent->n_vma + 1, sizeof(*vma));
	o->range = calloc(parent->n_vma + 1, sizeof(*o->range));
	if (!vma || !o->range) {
		free(vma);
		return -ENOMEM;
	}
	for (size_t i = 0; i < parent->n_vma; i++) {
		const Kcr__Vma *v = parent->vma[i];

		/* An overflow: it is not from us. */
		if (v->has_origin && origin_end(v) > v->origin)
			vma[count++] = v;
	}
	qsort(vma, count, sizeof(*vma), by_origin);
	keep_unique(o, vma, count);
	free(vma);
	return 0;
}

void origins_free(struct origins *o)
{
	free(o->range);
}

/* The first range that ends behind the address, or the number of ranges. */
static size_t find_range(const struct origins *o, uint64_t address)
{
	size_t low = 0, high = o->nr_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->range[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool origins_same(const struct origins *o, uint64_t address, uint64_t origin, uint64_t *end)
{
	size_t found = find_range(o, address);
	const struct origin_range *range = &o->range[found];

	if (found == o->nr_ranges)
		return false;
	if (address < range->start) {
		*end = range->start < *end ? range->start : *end;
		return false;
	}
	*end = range->end < *end ? range->end : *end;
	return range->shift == origin - address;
}
