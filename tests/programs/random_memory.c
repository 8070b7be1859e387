// SPDX-License-Identifier: GPL-2.0
/*
 * random_memory READY GO SEED [PAUSE [PAGES [KINDS]]]: up to four processes that change their memory
 * at full speed or with pauses (ms), at random but always the same for a seed: write, clear, map, unmap,
 * move and discard pages, map a file, fork, end.  They write KINDS different pages (a thousand
 * million).  Each knows what must be in each of its pages (its model) and looks again and again.
 * The models are in shared memory, which is not saved as pages, so that old pages cannot come with
 * the model that fits them.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE		4096ul
#define MOST_PAGES	16384u
#define PROCESSES	4u
#define FILE_PAGES	64u
#define ABSENT		UINT64_MAX	/* not mapped */
#define FILE_SEED	(1ull << 62)	/* + number of the page in the file */

struct model {
	pid_t pid;			/* 0: free */
	uint64_t random;
	uint64_t steps;
	uint64_t seed[MOST_PAGES];		/* of each page; 0: zeros */
};

static char *arena;
static struct model *models, *self;
static int file;
static long pause_ms;
static uint32_t pages = 2048, kinds = 1u << 30;

static uint32_t draw(uint32_t limit)
{
	self->random = self->random * 6364136223846793005ull + 1442695040888963407ull;
	return (self->random >> 33) % limit;
}

/* What a page of this seed begins and ends with, and has in between. */
static void make_page(uint64_t *page, uint64_t seed)
{
	uint64_t x = seed;

	for (size_t i = 0; i < PAGE / sizeof(*page); i++) {
		page[i] = seed ? x : 0;
		x = i % 8 ? x : x * 6364136223846793005ull + seed;
	}
}

static uint64_t *page_at(uint32_t page)
{
	return (uint64_t *)(arena + page * PAGE);
}

static void look(uint32_t page)
{
	uint64_t good[PAGE / sizeof(uint64_t)];

	if (self->seed[page] == ABSENT)
		return;
	make_page(good, self->seed[page]);
	if (!memcmp(good, page_at(page), PAGE))
		return;
	fprintf(stderr, "# process %d, step %llu: page %u is not of seed %#llx\n", getpid(),
		(unsigned long long)self->steps, page, (unsigned long long)self->seed[page]);
	_exit(1);
}

static void look_at_all(void)
{
	for (uint32_t page = 0; page < pages; page++)
		look(page);
}

/* ---- what it does ------------------------------------------------------------------ */

static void set(uint32_t from, uint32_t count, uint64_t seed)
{
	for (uint32_t page = from; page < from + count; page++)
		self->seed[page] = seed;
}

static void write_pages(uint32_t from, uint32_t count)
{
	for (uint32_t page = from; page < from + count; page++) {
		if (self->seed[page] == ABSENT)
			continue;
		self->seed[page] = 1 + draw(kinds);
		make_page(page_at(page), self->seed[page]);
	}
}

static void write_the_same(uint32_t from, uint32_t count)
{
	for (uint32_t page = from; page < from + count; page++)
		if (self->seed[page] != ABSENT)
			make_page(page_at(page), self->seed[page]);
}

static void clear(uint32_t from, uint32_t count)
{
	for (uint32_t page = from; page < from + count; page++) {
		if (self->seed[page] == ABSENT)
			continue;
		memset(page_at(page), 0, PAGE);
		self->seed[page] = 0;
	}
}

static void map_new(uint32_t from, uint32_t count)
{
	CHECK(mmap(page_at(from), count * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page_at(from));
	set(from, count, 0);
	write_pages(from, draw(count + 1));
}

static void discard(uint32_t from, uint32_t count)
{
	map_new(from, count);
	CHECK(!madvise(page_at(from), count * PAGE, MADV_DONTNEED));
	set(from, count, 0);
	write_pages(from, count / 2);
}

static void unmap(uint32_t from, uint32_t count)
{
	count = 1 + count / 4;
	CHECK(!munmap(page_at(from), count * PAGE));
	set(from, count, ABSENT);
}

static void map_file(uint32_t from, uint32_t count)
{
	uint32_t first = draw(FILE_PAGES - count);

	CHECK(mmap(page_at(from), count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		   file, first * PAGE) == page_at(from));
	for (uint32_t i = 0; i < count; i++)
		self->seed[from + i] = FILE_SEED + first + i;
}

/* Within one half to the other, so that they do not overlap. */
static void move(uint32_t from, uint32_t count)
{
	uint32_t to = (from + pages / 2) % pages;

	if (to + count > pages || (from < pages / 2 && from + count > pages / 2))
		return;
	map_new(from, count);		/* one mapping, as mremap() wants it */
	write_pages(from, count);
	CHECK(mremap(page_at(from), count * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		     page_at(to)) == page_at(to));
	memcpy(&self->seed[to], &self->seed[from], count * sizeof(self->seed[0]));
	set(from, count, ABSENT);
}

static void live(void);

static void fork_one(void)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct model *m = &models[i];
		pid_t child;

		if (__sync_val_compare_and_swap(&m->pid, 0, -1))
			continue;
		memcpy(m->seed, self->seed, sizeof(m->seed));
		m->random = self->random ^ (i + 1);
		m->steps = 0;
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			self = m;
			m->pid = getpid();
			live();
			m->pid = 0;
			_exit(check_failures);
		}
		return;
	}
}

static void reap(void)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0)
		CHECK(!status);
}

static bool is_over(void)
{
	/* A child lives for some time only. */
	return !access(check_go_file, F_OK) || (self != models && self->steps > 400);
}

static void run(void)
{
	static void (*const actions[])(uint32_t from, uint32_t count) = {
		write_pages, write_pages, write_pages, write_the_same, clear, map_new, discard,
		unmap, map_file, move,
	};

	while (!is_over()) {
		uint32_t count = 1 + draw(FILE_PAGES / 2), from = draw(pages - count);

		actions[draw(sizeof(actions) / sizeof(*actions))](from, count);
		for (int i = 0; i < 16; i++)
			look(draw(pages));
		if (!draw(50))
			fork_one();
		if (!draw(100))
			look_at_all();
		reap();
		self->steps++;
		if (pause_ms)
			check_sleep_ms(pause_ms);
	}
}

/* Until its children have ended, as orphans would leave the tree. */
static void live(void)
{
	int status;

	run();
	while (wait(&status) > 0)
		CHECK(!status);
	look_at_all();
}

static void make_file(void)
{
	uint64_t page[PAGE / sizeof(uint64_t)];

	file = open("random_memory.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	NEED(file >= 0);
	for (uint32_t i = 0; i < FILE_PAGES; i++) {
		make_page(page, FILE_SEED + i);
		NEED(write(file, page, PAGE) == PAGE);
	}
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc >= 4 && argc <= 7);
	pause_ms = argc > 4 ? atol(argv[4]) : 0;
	pages = argc > 5 ? (uint32_t)atol(argv[5]) : pages;
	kinds = argc > 6 ? (uint32_t)atol(argv[6]) : kinds;
	NEED(pages <= MOST_PAGES && kinds);
	arena = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	models = mmap(NULL, PROCESSES * sizeof(*models), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(arena != MAP_FAILED && models != MAP_FAILED);
	self = models;
	self->pid = getpid();
	self->random = strtoull(argv[3], NULL, 0);
	make_file();
	write_pages(0, pages);
	check_ready();
	live();
	return check_failures ? 1 : 0;
}
