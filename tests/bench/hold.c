// SPDX-License-Identifier: GPL-2.0
/*
 * Holds memory for the benchmarks: `hold MIB` fills that much with bytes that
 * do not compress; `hold --sparse GIB PAGES` maps much and touches little.
 * Prints "ready", then sleeps.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--sparse")) {
		size_t length = strtoul(argv[2], NULL, 10) << 30;
		size_t pages = strtoul(argv[3], NULL, 10);
		char *at = map(length);

		for (size_t i = 0; i < pages; i++)
			at[length / pages * i] = 1;
	} else if (argc == 2) {
		size_t length = strtoul(argv[1], NULL, 10) << 20;

		fill(map(length), length);
	} else {
		fputs("usage: hold MIB | hold --sparse GIB PAGES\n", stderr);
		return 2;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
