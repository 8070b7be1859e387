// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of which it is known how many pages are of which kind: says so, a line
 * `NAME ADDRESS PAGES` for each area, and has it still at the end.  Once the file `change` exists,
 * it removes that and writes to CHANGED of the random pages.
 */
#include <sys/mman.h>

#include "check.h"

#define PAGE	4096u
#define CHANGED	50u

enum { ZERO, READ, UNTOUCHED, CONSTANT, RANDOM, FILE_COPIED, FILE_READ, SHARED, NR_AREAS };

static struct area {
	const char *name;
	size_t pages;
	unsigned char *start;
} area[NR_AREAS] = {
	[ZERO] = { "zero", 300 },		/* written to, with zeros */
	[READ] = { "read", 100 },		/* never written to, only read */
	[UNTOUCHED] = { "untouched", 1000 },
	[CONSTANT] = { "constant", 500 },
	[RANDOM] = { "random", 400 },
	[FILE_COPIED] = { "copied", 10 },	/* of a file, written to */
	[FILE_READ] = { "mapped", 54 },		/* … only read; they follow */
	[SHARED] = { "shared", 32 },		/* without a name: its contents are saved */
};

/* What no codec makes smaller. */
static void fill_random(unsigned char *to, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += sizeof(seed)) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(to + i, &seed, sizeof(seed));
	}
}

/* Between two mappings that the kernel does not join to others, nor fills with huge pages. */
static unsigned char *map(size_t pages, int flags, int fd)
{
	unsigned char *p = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	NEED(p != MAP_FAILED);
	p = mmap(p + PAGE, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	NEED(p != MAP_FAILED);
	return p;
}

static void map_file(void)
{
	size_t length = (area[FILE_COPIED].pages + area[FILE_READ].pages) * PAGE;
	unsigned char *data = malloc(length);
	int fd = open("mapped_file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	NEED(data && fd >= 0);
	fill_random(data, length, 7);
	NEED(write(fd, data, length) == (ssize_t)length);
	free(data);
	area[FILE_COPIED].start = map(length / PAGE, MAP_PRIVATE, fd);
	area[FILE_READ].start = area[FILE_COPIED].start + area[FILE_COPIED].pages * PAGE;
	close(fd);
}

static uint64_t sum_area(const struct area *a)
{
	uint64_t sum = 1;

	for (size_t i = 0; i < a->pages * PAGE; i++)
		sum = sum * 31 + a->start[i];
	return sum;
}

static void set_up(void)
{
	for (int i = 0; i < FILE_COPIED; i++)
		area[i].start = map(area[i].pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	area[SHARED].start = map(area[SHARED].pages, MAP_SHARED | MAP_ANONYMOUS, -1);
	map_file();
	memset(area[ZERO].start, 0, area[ZERO].pages * PAGE);
	memset(area[CONSTANT].start, 0x55, area[CONSTANT].pages * PAGE);
	fill_random(area[RANDOM].start, area[RANDOM].pages * PAGE, 1);
	fill_random(area[FILE_COPIED].start, area[FILE_COPIED].pages * PAGE, 2);
	fill_random(area[SHARED].start, area[SHARED].pages * PAGE, 3);
	NEED(sum_area(&area[READ]));
	NEED(sum_area(&area[FILE_READ]));
	for (int i = 0; i < NR_AREAS; i++)
		printf("%s %#lx %zu\n", area[i].name, (unsigned long)area[i].start, area[i].pages);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t before[NR_AREAS];

	check_begin(argc, argv);
	set_up();
	for (int i = 0; i < NR_AREAS; i++)
		before[i] = i == UNTOUCHED ? 0 : sum_area(&area[i]);
	check_ready();
	while (!check_gone() && access("change", F_OK))
		check_sleep_ms(20);
	if (!check_gone()) {
		fill_random(area[RANDOM].start, CHANGED * PAGE, 4);
		before[RANDOM] = sum_area(&area[RANDOM]);
		unlink("change");
	}
	check_wait();
	for (int i = 0; i < NR_AREAS; i++)
		CHECK(i == UNTOUCHED || before[i] == sum_area(&area[i]));
	CHECK(!area[UNTOUCHED].start[0]);
	return check_end();
}
