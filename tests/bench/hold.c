// SPDX-License-Identifier: GPL-2.0
/*
 * Holds memory for the benchmarks: `hold MIB` fills that much with bytes that
 * do not compress; `hold --sparse GIB PAGES` maps much and touches little.
 * Prints "ready", then sleeps.  `hold MIB PERCENT` changes that share of its pages,
 * here and there, for every byte on its standard input, and prints "ready" again.
 * `hold MIB --forked COUNT` is so many processes, which have all of it in common.
 * `hold MIB --beat FILE [KB]` writes its PID and the time into the file each millisecond, and behind
 * them, once somebody has cleared it, the time when it found that, and the longest time between two;
 * and to so many kB of its pages in a second, one after the other.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void *map(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	/* Ordinary pages, so that results are comparable whatever the THP setting. */
	madvise(at, length, MADV_NOHUGEPAGE);
	return at;
}

static void fill(uint64_t *at, size_t length)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < length / sizeof(*at); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at[i] = x;
	}
}

static void change(uint64_t *at, size_t length, unsigned long percent)
{
	static uint64_t round;

	round++;
	for (size_t page = 0; page < length / 4096; page++)
		if ((page + round) * 37 % 100 < percent)
			at[page * 512 + round % 512] += round;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* For whoever wants to know when it runs: four numbers of 64 bits, all but the first in ns. */
static void beat(const char *path, uint64_t *memory, size_t length, uint64_t bytes_per_s)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	volatile uint64_t *text;
	uint64_t owed = 0, page = 0;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(1);
	text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (text == MAP_FAILED)
		exit(1);
	text[0] = (uint64_t)getpid();
	for (;;) {
		uint64_t last = text[1];
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		text[1] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		last = last && text[2] ? text[1] - last : 0;
		if (last > text[3])
			text[3] = last;
		/* What was missed while it did not run is not made up for. */
		owed += bytes_per_s * (last < 10000000 ? last : 10000000) / 1000000000;
		for (; owed >= 4096; owed -= 4096)
			memory[page++ % (length / 4096) * 512]++;
		if (!text[2])
			text[2] = text[1];
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--sparse")) {
		size_t length = strtoul(argv[2], NULL, 10) << 30;
		size_t pages = strtoul(argv[3], NULL, 10);
		char *at = map(length);

		for (size_t i = 0; i < pages; i++)
			at[length / pages * i] = 1;
		say_ready();
	} else if ((argc == 4 || argc == 5) && !strcmp(argv[2], "--beat")) {
		size_t length = strtoul(argv[1], NULL, 10) << 20;
		uint64_t *at = map(length);

		fill(at, length);
		beat(argv[3], at, length, argc == 5 ? strtoul(argv[4], NULL, 10) * 1000 : 0);
	} else if (argc == 4 && !strcmp(argv[2], "--forked")) {
		size_t length = strtoul(argv[1], NULL, 10) << 20;

		fill(map(length), length);
		for (unsigned long i = strtoul(argv[3], NULL, 10); i > 1; i--)
			if (!fork())
				for (;;)
					pause();
		say_ready();
	} else if (argc == 2 || argc == 3) {
		size_t length = strtoul(argv[1], NULL, 10) << 20;
		uint64_t *at = map(length);
		char byte;

		fill(at, length);
		say_ready();
		while (argc == 3 && read(STDIN_FILENO, &byte, 1) == 1) {
			change(at, length, strtoul(argv[2], NULL, 10));
			say_ready();
		}
	} else {
		fputs("usage: hold MIB [PERCENT | --beat FILE | --forked COUNT] | hold --sparse GIB PAGES\n", stderr);
		return 2;
	}
	for (;;)
		pause();
}
