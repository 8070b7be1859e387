// SPDX-License-Identifier: GPL-2.0
/*
 * Origins of pages, beside a model that looks at each page by itself: made-up memory maps
 * whose mappings have been moved, split and laid over each other's old places.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "checkpoint/origins.h"

#define MAPS		2000u
#define MAX_VMAS	8u
#define PAGES		48u		/* addresses and origins: pages 1 … 48 */

struct map {
	Kcr__Vma vma[MAX_VMAS];
	Kcr__Vma *pointer[MAX_VMAS];
	Kcr__Mm mm;
};

static uint64_t address_of(unsigned int page)
{
	return (uint64_t)page * CONTEXT_PAGE;
}

/* Mappings one behind the other, with gaps, of random origins, in random order. */
static void make(struct map *map, unsigned int *seed)
{
	unsigned int page = 1;

	kcr__mm__init(&map->mm);
	map->mm.vma = map->pointer;
	map->mm.n_vma = 0;
	while (map->mm.n_vma < MAX_VMAS) {
		unsigned int start = page + rand_r(seed) % 3, length = 1 + rand_r(seed) % 6;
		Kcr__Vma *v = &map->vma[map->mm.n_vma];

		if (start + length > PAGES)
			break;
		page = start + length;
		kcr__vma__init(v);
		v->start = address_of(start);
		v->end = address_of(page);
		v->has_origin = rand_r(seed) % 5 != 0;
		v->origin = rand_r(seed) % 2 ? v->start : address_of(1 + rand_r(seed) % PAGES);
		map->pointer[map->mm.n_vma++] = v;
	}
	for (size_t i = map->mm.n_vma; i > 1; i--) {
		size_t j = rand_r(seed) % i;
		Kcr__Vma *v = map->pointer[i - 1];

		map->pointer[i - 1] = map->pointer[j];
		map->pointer[j] = v;
	}
}

/* How many pages of the map have this origin; *address: of the last of them. */
static unsigned int count(const struct map *map, uint64_t origin, uint64_t *address)
{
	unsigned int found = 0;

	for (size_t i = 0; i < map->mm.n_vma; i++) {
		const Kcr__Vma *v = map->mm.vma[i];

		if (!v->has_origin || origin < v->origin || origin >= v->origin + (v->end - v->start))
			continue;
		*address = v->start + (origin - v->origin);
		found++;
	}
	return found;
}

/* Never is a page said to be the same that is not. */
static void compare(const struct map *map, const struct origins *o)
{
	for (unsigned int page = 1; page < PAGES; page++)
		for (unsigned int from = 1; from < PAGES; from++) {
			uint64_t end = address_of(PAGES), there = 0;
			bool same = origins_same(o, address_of(page), address_of(from), &end);

			assert_true(end > address_of(page) && end <= address_of(PAGES));
			for (uint64_t moved = 0; address_of(page) + moved < end; moved += CONTEXT_PAGE)
				assert_true(!same ||
					    (count(map, address_of(from) + moved, &there) == 1 &&
					     there == address_of(page) + moved));
		}
}

static void never_wrong(void **state)
{
	unsigned int seed = 1;
	struct map map;
	struct origins o;

	(void)state;
	for (unsigned int i = 0; i < MAPS; i++) {
		make(&map, &seed);
		assert_int_equal(origins_find(&o, &map.mm), 0);
		compare(&map, &o);
		origins_free(&o);
	}
}

static void add(struct map *map, unsigned int start, unsigned int end, unsigned int origin)
{
	Kcr__Vma *v = &map->vma[map->mm.n_vma];

	kcr__vma__init(v);
	v->start = address_of(start);
	v->end = address_of(end);
	v->has_origin = true;
	v->origin = address_of(origin);
	map->pointer[map->mm.n_vma++] = v;
}

static bool same(const struct origins *o, unsigned int page, unsigned int origin,
		 unsigned int expected_end)
{
	uint64_t end = address_of(PAGES);
	bool answer = origins_same(o, address_of(page), address_of(origin), &end);

	assert_int_equal(end, address_of(expected_end));
	return answer;
}

/* Pages that nobody has moved are known, or an increment would read all of them. */
static void known(void **state)
{
	struct map map = {};
	struct origins o;

	(void)state;
	kcr__mm__init(&map.mm);
	map.mm.vma = map.pointer;
	add(&map, 4, 8, 4);		/* never moved */
	add(&map, 10, 12, 30);		/* moved here from 30 */
	add(&map, 20, 26, 20);
	add(&map, 40, 42, 22);		/* moved from the middle of the one before, filled again */
	assert_int_equal(origins_find(&o, &map.mm), 0);
	assert_false(same(&o, 2, 2, 4));
	assert_true(same(&o, 4, 4, 8));
	assert_true(same(&o, 6, 6, 8));
	assert_false(same(&o, 6, 5, 8));
	assert_true(same(&o, 10, 30, 12));
	assert_false(same(&o, 10, 10, 12));
	assert_true(same(&o, 20, 20, 22));
	assert_false(same(&o, 22, 22, PAGES));
	assert_false(same(&o, 40, 22, PAGES));
	origins_free(&o);
}

static void nothing(void **state)
{
	struct origins o;

	(void)state;
	assert_int_equal(origins_find(&o, NULL), 0);
	assert_false(same(&o, 4, 4, PAGES));
	origins_free(&o);
}

/* A mapping of a crafted file that would reach behind the last address is ignored. */
static void overflow(void **state)
{
	struct map map = {};
	struct origins o;

	(void)state;
	kcr__mm__init(&map.mm);
	map.mm.vma = map.pointer;
	add(&map, 4, 8, 4);
	map.vma[0].origin = UINT64_MAX - CONTEXT_PAGE;
	assert_int_equal(origins_find(&o, &map.mm), 0);
	assert_false(same(&o, 4, 4, PAGES));
	origins_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_wrong),
		cmocka_unit_test(known),
		cmocka_unit_test(nothing),
		cmocka_unit_test(overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
