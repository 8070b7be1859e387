// SPDX-License-Identifier: GPL-2.0
/*
 * Areas of a lazy restart, beside a model that knows of each page of a small address space what
 * is there: parts are cut out, moved and inherited at random.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "restart/areas.h"

#define PAGE	4096u
#define PAGES	64u
#define ROUNDS	3000u
#define STEPS	20u

struct model {
	uint64_t origin[PAGES];		/* of each page; AREAS_NONE */
};

static void check(const struct areas *a, const struct model *m)
{
	uint64_t last = 0;

	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(areas_origin(a, page * PAGE), m->origin[page]);
	for (size_t i = 0; i < a->count; i++) {
		assert_true(a->area[i].start >= last && a->area[i].end > a->area[i].start);
		last = a->area[i].end;
	}
}

/* Finding by origin gives every page once, in the order of the origins. */
static void check_places(const struct areas *a, const struct model *m)
{
	uint64_t origin = 0, found = 0, there = 0;
	struct area area;

	while (areas_place(a, origin, PAGES * PAGE, &area)) {
		assert_true(area.origin >= origin);
		for (uint64_t at = area.start; at < area.end; at += PAGE, found++)
			assert_int_equal(m->origin[at / PAGE], area.origin + (at - area.start));
		origin = area.origin + (area.end - area.start);
	}
	for (unsigned int page = 0; page < PAGES; page++)
		there += m->origin[page] != AREAS_NONE;
	assert_int_equal(found, there);
}

static void fill(struct areas *a, struct model *m, unsigned int *seed)
{
	memset(m, 0xff, sizeof(*m));
	for (unsigned int page = rand_r(seed) % 4; page < PAGES;) {
		unsigned int n = 1 + rand_r(seed) % 16;

		n = n < PAGES - page ? n : PAGES - page;
		assert_false(areas_add(a, page * PAGE, (page + n) * PAGE, page * PAGE));
		for (unsigned int i = 0; i < n; i++)
			m->origin[page + i] = (page + i) * PAGE;
		page += n + rand_r(seed) % 3;
	}
}

static void cut(struct areas *a, struct model *m, unsigned int *seed)
{
	unsigned int from = rand_r(seed) % PAGES, n = rand_r(seed) % (PAGES - from);

	assert_false(areas_cut(a, from * PAGE, (from + n) * PAGE));
	for (unsigned int i = 0; i < n; i++)
		m->origin[from + i] = AREAS_NONE;
}

/* As mremap(2): the two ranges do not overlap. */
static void move(struct areas *a, struct model *m, unsigned int *seed)
{
	unsigned int n = 1 + rand_r(seed) % (PAGES / 4);
	unsigned int from = rand_r(seed) % (PAGES - n), to = rand_r(seed) % (PAGES - n);

	if (from < to + n && to < from + n)
		return;
	assert_false(areas_move(a, from * PAGE, to * PAGE, n * PAGE));
	for (unsigned int i = 0; i < n; i++) {
		m->origin[to + i] = m->origin[from + i];
		m->origin[from + i] = AREAS_NONE;
	}
}

static void changes(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct areas a = { 0 };
		struct model m;

		fill(&a, &m, &seed);
		for (unsigned int step = 0; step < STEPS; step++) {
			if (rand_r(&seed) % 2)
				cut(&a, &m, &seed);
			else
				move(&a, &m, &seed);
			check(&a, &m);
		}
		check_places(&a, &m);
		areas_free(&a);
	}
}

/* A child's mappings are those of its parent's areas at some other time: only they count. */
static void inherits(void **state)
{
	unsigned int seed = 2;

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct kcr_faulting_range range[PAGES];
		struct areas parent = { 0 }, later = { 0 }, child = { 0 };
		struct model m, moved;
		size_t count;

		fill(&parent, &m, &seed);
		moved = m;
		assert_false(areas_copy(&later, &parent));
		move(&later, &moved, &seed);
		for (count = 0; count < later.count; count++)
			range[count] = (struct kcr_faulting_range){
				later.area[count].start, later.area[count].end,
				later.area[count].origin,
			};
		/* What the parent has discarded is not in the child either. */
		cut(&parent, &m, &seed);
		for (unsigned int page = 0; page < PAGES; page++) {
			uint64_t origin = moved.origin[page];

			if (origin != AREAS_NONE && m.origin[origin / PAGE] == AREAS_NONE)
				moved.origin[page] = AREAS_NONE;
		}
		assert_false(areas_inherit(&child, &parent, range, count));
		check(&child, &moved);
		areas_free(&parent);
		areas_free(&later);
		areas_free(&child);
	}
}

/* Two mappings of one origin: the pages are where the parent has them. */
static void twice(void **state)
{
	const struct kcr_faulting_range range[] = {
		{ 0, 4 * PAGE, 0 }, { 8 * PAGE, 12 * PAGE, 0 },
	};
	struct areas parent = { 0 }, child = { 0 };

	(void)state;
	assert_false(areas_add(&parent, 8 * PAGE, 12 * PAGE, 0));
	assert_false(areas_inherit(&child, &parent, range, 2));
	assert_int_equal(child.count, 1);
	assert_int_equal(areas_origin(&child, 9 * PAGE), PAGE);
	areas_free(&parent);
	areas_free(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes), cmocka_unit_test(inherits), cmocka_unit_test(twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
