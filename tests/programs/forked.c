// SPDX-License-Identifier: GPL-2.0
/*
 * forked READY GO [MB [shadow | strangers]]: processes that have memory in common since they were forked, and have
 * done to it what processes do: written, dropped, protected, shortened, grown and moved parts
 * of it.  Afterwards each finds its own, also when all others have written to theirs.
 * shadow: among it is very much address space, of which few pages are used.
 * strangers: a process and its child have nothing in common with each other, but each with
 * an orphan that is not saved.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE		4096u
#define CHILDREN	5
#define SHADOWS		4
#define SHADOW		(12ull << 40)		/* bytes of each */
#define PROCESSES	(CHILDREN + 2)		/* the parent, and a child's child */

/* Shared by all. */
static struct meeting {
	int ready, written;
} *meeting;

static size_t nr_pages;			/* of the area, at first */
static char *area;
static size_t length;			/* in pages, now */
static uint32_t *expected;		/* of each page: its value; 0: zero */
static char *shadow[SHADOWS];		/* much address space, few pages: as AddressSanitizer's */
static char *heap;			/* by brk */
static uint32_t heap_value;

static void put(char *page, uint32_t value)
{
	uint32_t *word = (uint32_t *)page;

	for (size_t i = 0; i < PAGE / sizeof(*word); i++)
		word[i] = value ? value + i : 0;
}

static bool holds(const char *page, uint32_t value)
{
	const uint32_t *word = (const uint32_t *)page;

	for (size_t i = 0; i < PAGE / sizeof(*word); i++)
		if (word[i] != (value ? value + i : 0))
			return false;
	return true;
}

static void write_page(size_t i, uint32_t value)
{
	put(area + i * PAGE, value);
	expected[i] = value;
}

static void drop(size_t from, size_t to)
{
	NEED(madvise(area + from * PAGE, (to - from) * PAGE, MADV_DONTNEED) == 0);
	for (size_t i = from; i < to; i++)
		expected[i] = 0;
}

/* What child `number` has done to its copy. */
static void change(unsigned int number)
{
	size_t half = nr_pages / 2;

	/* The first one only reads. */
	for (size_t i = number; number && i < nr_pages; i += 3 + 4 * number)
		write_page(i, 1000000 * number + i);
	switch (number) {
	case 1:
		drop(half - 9, half + 9);
		drop(7, 8);
		break;
	case 2:
		NEED(mprotect(area + half * PAGE, half / 2 * PAGE, PROT_READ) == 0);
		break;
	case 3:
		NEED(munmap(area + half * PAGE, (nr_pages - half) * PAGE) == 0);
		length = half;
		break;
	case 4:
		area = mremap(area, nr_pages * PAGE, (nr_pages + 16) * PAGE, MREMAP_MAYMOVE);
		NEED(area != MAP_FAILED);
		length = nr_pages + 16;
		for (size_t i = nr_pages; i < length; i += 2)
			write_page(i, i);
		break;
	}
	heap_value += number;
	put(heap, heap_value);
}

static void verify(void)
{
	for (size_t i = 0; i < length; i++)
		if (!holds(area + i * PAGE, expected[i])) {
			errno = 0;
			fprintf(stderr, "# process %d, page %zu: %u instead of %u\n", getpid(), i,
				*(uint32_t *)(area + i * PAGE), expected[i]);
			CHECK(!"memory is as it was");
			break;
		}
	CHECK(holds(heap, heap_value));
	for (size_t i = 0; i < SHADOWS && shadow[i]; i++)
		CHECK(holds(shadow[i], 6 + i) && holds(shadow[i] + SHADOW - PAGE, 60 + i));
}

static void meet(int *count)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < PROCESSES)
		check_sleep_ms(5);
}

/* Each finds what it has left there, before and after all have written to their memory. */
static int live(uint32_t own)
{
	__atomic_add_fetch(&meeting->ready, 1, __ATOMIC_SEQ_CST);
	check_wait();
	verify();
	CHECK(mprotect(area, length * PAGE, PROT_READ | PROT_WRITE) == 0);
	for (size_t i = own % 5; i < length; i += 5)
		write_page(i, 77000000 + own);
	put(heap, heap_value = own);
	meet(&meeting->written);
	verify();
	/* It is one mapping, not several; but not where parts of it were inherited. */
	if (own == CHILDREN + 1)
		return check_end();
	area = mremap(area, length * PAGE, (length + 1) * PAGE, MREMAP_MAYMOVE);
	CHECK(area != MAP_FAILED);
	if (area != MAP_FAILED)
		verify();
	return check_end();
}

static int child(unsigned int number)
{
	int status = 0;
	pid_t pid = 0;

	change(number);
	if (number == 2) {
		pid = fork();
		NEED(pid >= 0);
		if (!pid) {
			for (size_t i = 1; i < nr_pages / 2; i += 50)
				write_page(i, 9000000 + i);
			return live(CHILDREN + 1);
		}
	}
	live(number + 1);
	if (pid)
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return check_end();
}

static void fill_shadow(void)
{
	for (size_t i = 0; i < SHADOWS; i++) {
		/* Not next to each other, or they would be one. */
		char *at = mmap(NULL, SHADOW + PAGE, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		NEED(at != MAP_FAILED && !mprotect(at, SHADOW, PROT_READ | PROT_WRITE));
		shadow[i] = at;
		put(at, 6 + i);
		put(at + SHADOW - PAGE, 60 + i);
	}
}

/* low: at an address below all others. */
static void fill(bool low)
{
	area = mmap(low ? (void *)0x20000000 : NULL, (nr_pages + 16) * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expected = calloc(nr_pages + 16, sizeof(*expected));
	meeting = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	heap = sbrk(64 * PAGE);
	NEED(area != MAP_FAILED && expected && meeting != MAP_FAILED && heap != (void *)-1);
	heap += -(uintptr_t)heap & (PAGE - 1);
	NEED(munmap(area + nr_pages * PAGE, 16 * PAGE) == 0);
	length = nr_pages;
	/* Pages that were never used, zero ones, others. */
	for (size_t i = 0; i < nr_pages; i++)
		if (i % 11 != 10)
			write_page(i, i % 7 ? 1 + i : 0);
	for (size_t i = 0; i < 8; i++)
		put(heap + i * PAGE, 5);
	heap_value = 5;
}

static int live_beside_strangers(bool is_child)
{
	for (size_t i = 0; i < nr_pages; i++)
		write_page(i, (is_child ? 500000 : 100000) + i);
	NEED(check_leave_orphan());
	__atomic_add_fetch(&meeting->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&meeting->ready, __ATOMIC_SEQ_CST) < 2)
		check_sleep_ms(5);
	if (!is_child)
		check_ready();
	check_wait();
	verify();
	return check_end();
}

static int be_strangers(void)
{
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (!pid)
		return live_beside_strangers(true);
	live_beside_strangers(false);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return check_end();
}

int main(int argc, char **argv)
{
	const char *what = argc > 4 ? argv[4] : "";
	bool strangers = !strcmp(what, "strangers");
	pid_t pid[CHILDREN];
	int status;

	check_begin(argc, argv);
	nr_pages = (argc > 3 ? strtoul(argv[3], NULL, 0) : 8) * 256;
	fill(strangers);
	if (strangers)
		return be_strangers();
	if (!strcmp(what, "shadow"))
		fill_shadow();
	for (unsigned int i = 0; i < CHILDREN; i++) {
		pid[i] = fork();
		NEED(pid[i] >= 0);
		if (!pid[i])
			return child(i);
	}
	while (__atomic_load_n(&meeting->ready, __ATOMIC_SEQ_CST) < PROCESSES - 1)
		check_sleep_ms(5);
	check_ready();
	live(0);
	for (unsigned int i = 0; i < CHILDREN; i++)
		CHECK(waitpid(pid[i], &status, 0) == pid[i] && status == 0);
	return check_end();
}
