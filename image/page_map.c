// SPDX-License-Identifier: GPL-2.0
/*
 * The tables of a context file, as sorted runs over arrays of owners and hashes.
 * The arrays grow with the sections that arrive, and are read-only after
 * page_map_finish(): then several threads may search.
 */
#include "image/page_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/hash.h"
#include "report/report.h"

#define FIRST_PAGES	65536u

struct map_run {
	uint64_t address;
	int32_t pid;
	uint32_t nr_pages;
	size_t first;			/* number of its first page */
};

struct page_map {
	struct map_run *run;
	size_t nr_runs, room_runs;
	uint16_t *owner;		/* of each page */
	struct context_hash *hash;
	size_t nr_pages, room_pages;
	uint64_t owned[CONTEXT_MAX_ANCESTORS + 1];
};

struct context_hash page_hash(const void *page)
{
	XXH128_hash_t h = arch_hash(page, CONTEXT_PAGE);

	return (struct context_hash){ .low = h.low64, .high = h.high64 };
}

struct page_map *page_map_new(void)
{
	return calloc(1, sizeof(struct page_map));
}

void page_map_free(struct page_map *m)
{
	if (!m)
		return;
	free(m->run);
	free(m->owner);
	free(m->hash);
	free(m);
}

/* Room for `more` elements after `count`; 0 or -ENOMEM. */
static int grow(void **array, size_t size, size_t room)
{
	void *larger = reallocarray(*array, room, size);

	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

static size_t enough(size_t room, size_t need)
{
	if (!room)
		room = FIRST_PAGES;
	while (room < need)
		room *= 2;
	return room;
}

static int make_room(struct page_map *m, const struct context_item *item)
{
	size_t pages = enough(m->room_pages, m->nr_pages + item->nr_pages);
	size_t runs = enough(m->room_runs, m->nr_runs + item->nr_runs);
	int err = 0;

	if (runs != m->room_runs)
		err = grow((void **)&m->run, sizeof(*m->run), runs);
	if (err)
		return err;
	m->room_runs = runs;
	if (pages == m->room_pages)
		return 0;
	err = grow((void **)&m->owner, sizeof(*m->owner), pages);
	if (!err)
		err = grow((void **)&m->hash, sizeof(*m->hash), pages);
	if (!err)
		m->room_pages = pages;
	return err;
}

int page_map_add(struct page_map *m, const struct context_item *item)
{
	size_t first = m->nr_pages;

	if (make_room(m, item))
		return report_errno(-ENOMEM, "the tables of a context file");
	for (size_t i = 0; i < item->nr_runs; i++) {
		m->run[m->nr_runs++] = (struct map_run){
			.address = item->runs[i].address, .pid = item->pid,
			.nr_pages = item->runs[i].nr_pages, .first = first,
		};
		first += item->runs[i].nr_pages;
	}
	memcpy(m->owner + m->nr_pages, item->owner, item->nr_pages * sizeof(*m->owner));
	memcpy(m->hash + m->nr_pages, item->hash, item->nr_pages * sizeof(*m->hash));
	for (size_t i = 0; i < item->nr_pages; i++)
		m->owned[item->owner[i]]++;
	m->nr_pages += item->nr_pages;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct map_run *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static uint64_t end_of(const struct map_run *run)
{
	return run->address + (uint64_t)run->nr_pages * CONTEXT_PAGE;
}

int page_map_finish(struct page_map *m, const char *name)
{
	if (m->nr_runs)
		qsort(m->run, m->nr_runs, sizeof(*m->run), compare);
	for (size_t i = 1; i < m->nr_runs; i++)
		if (m->run[i].pid == m->run[i - 1].pid &&
		    m->run[i].address < end_of(&m->run[i - 1]))
			return report_fail(-EINVAL, "%s: damaged context file: its tables describe a "
					   "page twice", name);
	return 0;
}

/* Is the page in this run or behind it? */
static bool begins_before(const struct map_run *run, int32_t pid, uint64_t address)
{
	return run->pid != pid ? run->pid < pid : run->address <= address;
}

/* Is run `at` the last one that begins at the address or before it? */
static bool is_last_before(const struct page_map *m, size_t at, int32_t pid, uint64_t address)
{
	return at < m->nr_runs && begins_before(&m->run[at], pid, address) &&
	       (at + 1 == m->nr_runs || !begins_before(&m->run[at + 1], pid, address));
}

/* The last run that begins at the address or before it; 0: there is none. */
static size_t search(const struct page_map *m, int32_t pid, uint64_t address)
{
	size_t low = 0, high = m->nr_runs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (begins_before(&m->run[middle], pid, address))
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

size_t page_map_find(const struct page_map *m, page_cursor *cursor, int32_t pid,
		     uint64_t address)
{
	size_t at = *cursor;

	if (!m->nr_runs)
		return SIZE_MAX;
	if (!is_last_before(m, at, pid, address)) {
		at = is_last_before(m, at + 1, pid, address) ? at + 1 : search(m, pid, address);
		*cursor = at;
	}
	if (m->run[at].pid != pid || address < m->run[at].address || address >= end_of(&m->run[at]))
		return SIZE_MAX;
	return m->run[at].first + (address - m->run[at].address) / CONTEXT_PAGE;
}

uint64_t page_map_span(const struct page_map *m, page_cursor *cursor, int32_t pid, uint64_t address,
		       uint64_t nr_pages, size_t *page)
{
	const struct map_run *run;
	uint64_t end = address + nr_pages * CONTEXT_PAGE, next = end;

	*page = page_map_find(m, cursor, pid, address);
	if (!m->nr_runs)
		return nr_pages;
	run = &m->run[*cursor];
	if (*page != SIZE_MAX) {
		next = end_of(run);
	} else {
		if (begins_before(run, pid, address))
			run++;
		if (run < m->run + m->nr_runs && run->pid == pid)
			next = run->address;
	}
	return ((next < end ? next : end) - address) / CONTEXT_PAGE;
}

unsigned int page_map_owner(const struct page_map *m, size_t page)
{
	return m->owner[page];
}

const uint16_t *page_map_owners(const struct page_map *m, size_t page)
{
	return &m->owner[page];
}

const struct context_hash *page_map_hashes(const struct page_map *m, size_t page)
{
	return &m->hash[page];
}

bool page_map_matches(const struct page_map *m, size_t page, const struct context_hash *hash)
{
	return m->hash[page].low == hash->low && m->hash[page].high == hash->high;
}

uint64_t page_map_owned(const struct page_map *m, unsigned int owner)
{
	return owner <= CONTEXT_MAX_ANCESTORS ? m->owned[owner] : 0;
}
