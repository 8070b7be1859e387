// SPDX-License-Identifier: GPL-2.0
/*
 * lazy READY GO NAME [PAGES]: has much memory, and when it goes on does with it, before all can
 * have been loaded, what NAME says; each page must be what it would be without a restart.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4	/* Linux 5.7 */
#endif
#define PAGE	4096ul

static char *memory;
static uint64_t pages = 8192;		/* 32 MiB */

static uint64_t *page_at(const char *base, uint64_t page)
{
	return (uint64_t *)(base + page * PAGE);
}

static char *map(uint64_t count)
{
	char *base = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	NEED(base != MAP_FAILED);
	return base;
}

static void fill(char *base, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		for (uint64_t k = 0; k < PAGE / 8; k += 32)
			page_at(base, i)[k] = i * 1000003 + k + 1;
}

/* Page i at `base` holds what page `i + shift` was filled with. */
static void is_filled(const char *base, uint64_t from, uint64_t to, uint64_t shift)
{
	uint64_t bad = 0, first = 0;

	for (uint64_t i = from; i < to; i++) {
		bool good = true;

		for (uint64_t k = 0; k < PAGE / 8; k += 32)
			good &= page_at(base, i)[k] == (i + shift) * 1000003 + k + 1;
		if (!good && !bad++)
			first = i;
	}
	if (bad)
		fprintf(stderr, "# %llu pages are wrong, the first is %llu: %#llx\n",
			(unsigned long long)bad, (unsigned long long)first,
			(unsigned long long)*page_at(base, first));
	CHECK(!bad);
}

static void is_zero(const char *base, uint64_t from, uint64_t to)
{
	uint64_t bad = 0;

	for (uint64_t i = from; i < to; i++)
		for (uint64_t k = 0; k < PAGE / 8; k += 32)
			bad += page_at(base, i)[k] != 0;
	CHECK(!bad);
}

static void allocate(void)
{
	if (check_argument)
		pages = strtoul(check_argument, NULL, 10);
	memory = map(pages);
	fill(memory, 0, pages);
}

static void setup(void)
{
	allocate();
	checkpoint_here();
}

static void backwards(void)
{
	setup();
	for (uint64_t i = pages; i; i -= 64)
		is_filled(memory, i - 64, i, 0);
}

static void in_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		run();
		_exit(check_end());
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void look_at_all(void)
{
	is_filled(memory, 0, pages, 0);
}

static void clear_and_look(void)
{
	CHECK(!madvise(memory + PAGE * 100, 4000 * PAGE, MADV_DONTNEED));
	is_zero(memory, 100, 4100);
	is_filled(memory, 0, 100, 0);
	is_filled(memory, 4100, pages, 0);
}

static void forks(void)
{
	setup();
	in_child(clear_and_look);
	in_child(look_at_all);
	look_at_all();
}

/* In a child, what a fork was to empty is empty, and stays so in its own child. */
static void look_wiped(void)
{
	is_zero(memory, 2048, 4096);
	is_filled(memory, 4096, pages, 0);
	fill(memory, 2048, 2050);
	is_filled(memory, 2048, 2050, 0);
	is_filled(memory, 0, 2048, 0);
}

static void wiped(void)
{
	setup();
	CHECK(!madvise(memory + 2048 * PAGE, 2048 * PAGE, MADV_WIPEONFORK));
	in_child(look_wiped);
	CHECK(!madvise(memory + 2048 * PAGE, 2048 * PAGE, MADV_KEEPONFORK));
	look_at_all();
	in_child(look_at_all);
}

static void dontneed(void)
{
	setup();
	clear_and_look();
	fill(memory, 100, 4100);
	look_at_all();
}

/* A part is moved away, and twice as large then; new memory is where it was. */
static void moves(void)
{
	char *to, *fresh;

	setup();
	to = mremap(memory + 2048 * PAGE, 4096 * PAGE, 8192 * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED);
	is_filled(to, 0, 2048, 2048);
	is_zero(to, 4096, 8192);
	fresh = mmap(memory + 2048 * PAGE, 4096 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(fresh == memory + 2048 * PAGE);
	is_zero(fresh, 0, 4096);
	is_filled(to, 2048, 4096, 2048);
	is_filled(memory, 0, 2048, 0);
	is_filled(memory, 6144, pages, 0);
}

/* What was unmapped is not there again when the mapping before it grows. */
static void grows(void)
{
	setup();
	CHECK(!munmap(memory + 4096 * PAGE, 4096 * PAGE));
	CHECK(mremap(memory, 4096 * PAGE, 6144 * PAGE, 0) == memory);
	is_zero(memory, 4096, 6144);
	is_filled(memory, 0, 4096, 0);
}

static void dontunmap(void)
{
	char *to;

	setup();
	to = (char *)syscall(SYS_mremap, memory, pages * PAGE, pages * PAGE,
			     MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (to == MAP_FAILED)
		check_failed(__FILE__, __LINE__, "mremap");
	if (to == MAP_FAILED)
		return;
	is_zero(memory, 3000, 5000);
	is_filled(to, 2000, 6000, 0);
	fill(memory, 0, pages);
	in_child(look_at_all);
	is_filled(to, 0, pages, 0);
	look_at_all();
}

/* The child moves, the parent moves, while the other looks. */
static void fork_moves(void)
{
	int status;
	pid_t pid;
	char *place = map(pages), *to;

	setup();
	to = mremap(memory, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	CHECK(to == place);
	pid = fork();
	if (!pid) {
		memory = mremap(to, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory);
		look_at_all();
		_exit(check_end());
	}
	is_filled(to, 0, pages, 0);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* Both before any of its pages can have been loaded: others come first. */
static void moves_early(void)
{
	char *place, *to;

	place = map(pages);
	memory = map(pages + 2) + PAGE;
	CHECK(!mprotect(memory - PAGE, PAGE, PROT_NONE));
	CHECK(!mprotect(memory + pages * PAGE, PAGE, PROT_NONE));
	fill(memory, 0, pages);
	fill(map(4 * pages), 0, 4 * pages);
	checkpoint_here();
	to = mremap(memory, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	CHECK(to == place);
	memory = to;
	in_child(look_at_all);
	look_at_all();
}

/* Likewise, of memory that cannot be written to. */
static void read_only(void)
{
	char *to;

	memory = map(pages);
	fill(memory, 0, pages);
	CHECK(!mprotect(memory, pages * PAGE, PROT_READ));
	checkpoint_here();
	to = mremap(memory, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map(pages));
	CHECK(to != MAP_FAILED);
	memory = to;
	in_child(look_at_all);
	CHECK(!mprotect(memory, pages * PAGE, PROT_READ | PROT_WRITE));
	look_at_all();
}

static char *map_at(char *at, uint64_t count)
{
	char *base = mmap(at, count * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	NEED(base == at);
	return base;
}

/*
 * Two mappings, one of which is small, that are one after the restart: huge pages of the first may
 * reach into the second.
 */
static void neighbours(void)
{
	uint64_t small = 301;

	memory = map(pages + 1024);
	NEED(!munmap(memory, (pages + 1024) * PAGE));
	memory = (char *)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
	fill(map_at(memory, small - 1), 0, small - 1);
	map_at(memory + small * PAGE, pages - small);
	fill(memory, small, pages);
	map_at(memory + (small - 1) * PAGE, 1);
	fill(memory, small - 1, small);
	checkpoint_here();
	look_at_all();
}

static void *read_part(void *arg)
{
	uint64_t part = (uint64_t)arg;

	is_filled(memory, part * 1024, (part + 1) * 1024, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[8];

	setup();
	for (uint64_t i = 0; i < 8; i++)
		CHECK(!pthread_create(&thread[i], NULL, read_part, (void *)(7 - i)));
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
}

static __thread uint64_t own[512];

static void *keep(void *arg)
{
	bool good = true;

	for (int i = 0; i < 512; i++)
		own[i] = (uint64_t)arg * 1000 + i;
	check_wait();
	for (int i = 0; i < 512; i++)
		good &= own[i] == (uint64_t)arg * 1000 + i;
	CHECK(good);
	return NULL;
}

/* Threads that there are before, whose large stacks are loaded lazily. */
static void stacks(void)
{
	pthread_t thread[4];
	pthread_attr_t attributes;

	NEED(!pthread_attr_init(&attributes) &&
	     !pthread_attr_setstacksize(&attributes, 16 << 20));
	for (uint64_t i = 0; i < 4; i++)
		NEED(!pthread_create(&thread[i], &attributes, keep, (void *)(i + 1)));
	check_sleep_ms(300);
	setup();
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	look_at_all();
}

static void *work_alone(void *arg)
{
	(void)arg;
	while (check_leader_state() != 'Z')
		check_sleep_ms(20);
	own[0] = 1;
	setup();
	CHECK(own[0] == 1);
	look_at_all();
	exit(check_end());
}

/* The first thread has ended. */
static void leaderless(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	NEED(!pthread_attr_init(&attributes) &&
	     !pthread_attr_setstacksize(&attributes, 16 << 20) &&
	     !pthread_create(&thread, &attributes, work_alone, NULL));
	for (;;)
		syscall(SYS_exit, 0);
}

/* System calls get what is not loaded yet. */
static void calls(void)
{
	char *copy;
	int ends[2];

	NEED(!pipe(ends));
	setup();
	copy = map(64);
	for (uint64_t i = 0; i < pages; i += 512) {
		CHECK(write(ends[1], memory + i * PAGE, 4 * PAGE) == 4 * PAGE);
		CHECK(read(ends[0], copy, 4 * PAGE) == 4 * PAGE);
		is_filled(copy, 0, 4, i);
		CHECK(pread(open("/dev/zero", O_RDONLY), memory + (i + 8) * PAGE, PAGE, 0) == PAGE);
		is_zero(memory, i + 8, i + 9);
		is_filled(memory, i + 9, i + 12, 0);
	}
}

static void protect(void)
{
	setup();
	CHECK(!mprotect(memory + 1000 * PAGE, 3000 * PAGE, PROT_READ));
	CHECK(!mprotect(memory + 2000 * PAGE, 10 * PAGE, PROT_NONE));
	is_filled(memory, 0, 2000, 0);
	is_filled(memory, 2010, pages, 0);
	CHECK(!mprotect(memory, pages * PAGE, PROT_READ | PROT_WRITE));
	look_at_all();
}

/* The heap shrinks and grows. */
static void heap(void)
{
	memory = sbrk(pages * PAGE);
	NEED(memory != (void *)-1);
	fill(memory, 0, pages);
	checkpoint_here();
	is_filled(memory, 0, 10, 0);
	sbrk(-4096 * (intptr_t)PAGE);
	sbrk(4096 * PAGE);
	is_zero(memory, 4096, pages);
	sbrk(1024 * PAGE);
	is_zero(memory, pages, pages + 1024);
	is_filled(memory, 0, 4096, 0);
	fill(memory, 4096, pages);
	in_child(look_at_all);
}

static void exec(void)
{
	setup();
	is_filled(memory, 5000, 5010, 0);
	execlp("true", "true", NULL);
	CHECK(false);
}

static void forks_exec(void)
{
	setup();
	for (int i = 0; i < 5; i++) {
		char command[64];

		snprintf(command, sizeof(command), "exit %d", i);
		CHECK(WEXITSTATUS(system(command)) == i);
	}
	in_child(exec);
	look_at_all();
}

/* Looks at the first pages, and a second later at all. */
static void looks_later(void)
{
	setup();
	is_filled(memory, 0, 4096, 0);
	check_sleep_ms(1000);
	look_at_all();
}

/* Its child calls exec when there is a file `exec`, and stays. */
static void child_execs(void)
{
	pid_t child;

	allocate();
	child = fork();
	NEED(child >= 0);
	if (!child) {
		while (access("exec", F_OK))
			check_sleep_ms(20);
		execlp("sleep", "sleep", "10000", NULL);
		_exit(1);
	}
	checkpoint_here();
	look_at_all();
}

/* Ends before it can have all. */
static void leaves(void)
{
	setup();
	is_filled(memory, 0, 10, 0);
}

static atomic_bool over;

/* Counts in each page of a half in turn, and knows what it has counted. */
static void *count(void *arg)
{
	uint64_t half = pages / 2, first = (uint64_t)arg * half, rounds = 0, at, bad = 0;

	for (at = 0; !over; at = (at + 1) % half) {
		rounds += !at;
		page_at(memory, first + at)[1]++;
	}
	for (uint64_t i = 0; i < half; i++)
		bad += page_at(memory, first + i)[1] != rounds - (at && i >= at);
	CHECK(!bad);
	return NULL;
}

/* Two processes write to all of their memory all the time, each with two threads. */
static void writers(void)
{
	pthread_t thread[2];
	pid_t child;
	int status;

	allocate();
	child = fork();
	NEED(child >= 0);
	for (uint64_t i = 0; i < 2; i++)
		NEED(!pthread_create(&thread[i], NULL, count, (void *)i));
	if (child)
		checkpoint_here();
	else
		check_wait();
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	look_at_all();
	if (!child)
		_exit(check_end());
	CHECK(waitpid(child, &status, 0) == child && !status);
}

static const struct check checks[] = {
	{ "backwards", backwards },	{ "forks", forks },
	{ "dontneed", dontneed },	{ "moves", moves },
	{ "grows", grows },		{ "dontunmap", dontunmap },
	{ "fork_moves", fork_moves },	{ "moves_early", moves_early },
	{ "read_only", read_only },	{ "neighbours", neighbours },
	{ "threads", threads },		{ "stacks", stacks },
	{ "leaderless", leaderless },	{ "writers", writers },
	{ "leaves", leaves },		{ "child_execs", child_execs },
	{ "calls", calls },		{ "protect", protect },
	{ "heap", heap },		{ "exec", exec },
	{ "forks_exec", forks_exec },	{ "looks_later", looks_later },
	{ "wiped", wiped },
	{}
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
