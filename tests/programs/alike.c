// SPDX-License-Identifier: GPL-2.0
/*
 * alike READY GO PAGES: a process and another program that it has started, which have as many equal
 * pages each, at different addresses: a table that both have, twice in the first; pages that are
 * all the same, scattered; pages over a file; some that only may be read, or nothing.  Each writes
 * to one of a group afterwards and must find the others as they were.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE	4096ul

static size_t nr_pages;
static uint32_t *first, *second, *over_file, *scattered;

/* What page `i` of the table holds; no two are the same. */
static void put(uint32_t *page, uint32_t i)
{
	for (uint32_t k = 0; k < PAGE / sizeof(*page); k++)
		page[k] = (i + 1) * 2654435761u + k;
}

static bool holds(const uint32_t *page, uint32_t i)
{
	uint32_t good[PAGE / sizeof(*page)];

	put(good, i);
	return !memcmp(page, good, PAGE);
}

static uint32_t *at(uint32_t *memory, size_t page)
{
	return memory + page * PAGE / sizeof(*memory);
}

static uint32_t *map(size_t pages, int fd)
{
	void *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	NEED(memory != MAP_FAILED);
	return memory;
}

static void fill(uint32_t *memory)
{
	for (size_t i = 0; i < nr_pages; i++)
		put(at(memory, i), i);
}

static int make_file(void)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s.data", check_go_file);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0);
	NEED(ftruncate(fd, 8 * PAGE) == 0);
	return fd;
}

static void set_up(bool other)
{
	size_t shift = other ? 3 : 0;		/* other addresses, and a stranger's order */

	map(shift + 1, -1);
	first = map(nr_pages, -1);
	fill(first);
	second = map(nr_pages, -1);
	if (!other)
		fill(second);
	over_file = map(8, make_file());
	for (size_t i = 0; i < 4; i++)
		put(at(over_file, i), i + shift);
	scattered = map(2 * nr_pages, -1);
	for (size_t i = 0; i < nr_pages; i++)
		memset(at(scattered, 2 * i), 0xff, PAGE);
	NEED(mprotect(at(first, 1), 2 * PAGE, PROT_READ) == 0);
	NEED(mprotect(at(first, 4), PAGE, PROT_NONE) == 0);
}

static bool is_filled(const uint32_t *page, uint32_t word)
{
	for (size_t k = 0; k < PAGE / sizeof(*page); k++)
		if (page[k] != word)
			return false;
	return true;
}

/* All but page `but` of the table. */
static void look_at(uint32_t *memory, size_t but)
{
	for (size_t i = 0; i < nr_pages; i++)
		if (i != but)
			CHECK(holds(at(memory, i), i));
}

static void look(bool other)
{
	NEED(mprotect(at(first, 4), PAGE, PROT_READ) == 0);
	look_at(first, SIZE_MAX);
	if (!other)
		look_at(second, SIZE_MAX);
	for (size_t i = 0; i < 4; i++)
		CHECK(holds(at(over_file, i), i + (other ? 3 : 0)));
	for (size_t i = 4; i < 8; i++)
		CHECK(is_filled(at(over_file, i), 0));
	for (size_t i = 0; i < nr_pages; i++) {
		CHECK(is_filled(at(scattered, 2 * i), ~0u));
		CHECK(is_filled(at(scattered, 2 * i + 1), 0));
	}
}

/* What one writes to is not the others'. */
static void write_to_some(bool other)
{
	put(at(first, 5), 7777);
	put(at(scattered, 4), 8888);
	look_at(first, 5);
	if (!other)
		look_at(second, SIZE_MAX);
	CHECK(holds(at(first, 5), 7777));
	CHECK(holds(at(scattered, 4), 8888));
	CHECK(is_filled(at(scattered, 6), ~0u));
}

int main(int argc, char **argv)
{
	bool other = argc == 5;
	char ready[4096];
	int status;
	pid_t child = 0;

	check_begin(argc, argv);
	NEED(argc >= 4);
	nr_pages = (size_t)atol(argv[3]);
	NEED(nr_pages >= 8);
	set_up(other);
	snprintf(ready, sizeof(ready), "%s.other", argv[1]);
	if (!other) {
		unlink(ready);
		child = fork();
		NEED(child >= 0);
		if (!child) {
			execl("/proc/self/exe", argv[0], ready, argv[2], argv[3], "other", NULL);
			_exit(127);
		}
		while (access(ready, F_OK))
			check_sleep_ms(10);
	}
	check_ready();
	check_wait();
	look(other);
	write_to_some(other);
	if (!other) {
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(!status);
	}
	return check_failures ? 1 : 0;
}
