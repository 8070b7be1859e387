// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is excluded comes back as zeros after a restart, whole pages of
 * it, and stays what it was where the program goes on.  Anonymous memory, that
 * of a file, .bss, a range that no snapshot holds; shared memory is saved all
 * the same.  A child has what its parent excluded, and may take it back.
 * Nothing here calls cr_init().
 */
#include <kcr.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define PAGE	4096
#define PAGES	16
#define SIZE	(PAGES * PAGE)

static char zeroed[SIZE] __attribute__((aligned(PAGE)));
static char initial[SIZE] __attribute__((aligned(PAGE))) = { 1 };
static char *anonymous, *file, *early, *shared, *own;
static volatile char *told;	/* shared: the child is set up */

static bool is_zero(const char *page)
{
	for (int i = 0; i < PAGE; i++)
		if (page[i])
			return false;
	return true;
}

/* Pages 4, 5 and 7 of 16. */
static void exclude(char *memory, uint64_t seed)
{
	for (int i = 0; i < PAGES; i++)
		check_fill(memory + i * PAGE, PAGE, seed + i * 1000);
	NEED(!kcr_exclude(memory + 3 * PAGE + 1, 5 * PAGE));
	NEED(!kcr_include(memory + 6 * PAGE + 10, 1));
}

static void check(const char *memory, uint64_t seed, bool lost)
{
	for (int i = 0; i < PAGES; i++) {
		bool excluded = i == 4 || i == 5 || i == 7;

		if (lost && excluded)
			CHECK(is_zero(memory + i * PAGE));
		else
			CHECK(check_filled(memory + i * PAGE, PAGE, seed + i * 1000));
	}
}

static char *map(int flags, int fd)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	NEED(memory != MAP_FAILED);
	return memory;
}

static char *map_file(void)
{
	int fd = open("mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *memory;

	NEED(fd >= 0 && !ftruncate(fd, SIZE));
	for (int i = 0; i < SIZE; i += 8)
		NEED(pwrite(fd, "contents", 8, i) == 8);
	memory = map(MAP_PRIVATE, fd);
	close(fd);
	return memory;
}

static void check_all(bool lost)
{
	check(anonymous, 1, lost);
	check(file, 2, lost);
	check(early, 3, lost);
	check(zeroed, 4, lost);
	check(initial, 5, lost);
	check(shared, 6, false);
}

/* What its parent excluded, but for `own`. */
static int child(void)
{
	bool lost;

	NEED(!kcr_include(own, SIZE));
	*told = 1;
	check_wait();
	lost = kcr_restarted(NULL, NULL, 0) > 0;
	check(anonymous, 1, lost);
	check(initial, 5, lost);
	check(own, 7, false);
	return check_end();
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	check_begin(argc, argv);
	anonymous = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	file = map_file();
	early = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	shared = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	own = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	told = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	NEED(!madvise(early, SIZE, MADV_DONTFORK));
	exclude(anonymous, 1);
	exclude(file, 2);
	exclude(early, 3);
	exclude(zeroed, 4);
	exclude(initial, 5);
	exclude(shared, 6);
	exclude(own, 7);
	pid = fork();
	NEED(pid >= 0);
	if (!pid)
		_exit(child());
	while (!*told)
		usleep(1000);
	check_ready();
	check_wait();
	check_all(kcr_restarted(NULL, NULL, 0) > 0);
	check(own, 7, kcr_restarted(NULL, NULL, 0) > 0);
	/* It is memory like any other. */
	memset(file, 1, SIZE);
	memset(initial, 1, SIZE);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	return check_end();
}
