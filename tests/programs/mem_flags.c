// SPDX-License-Identifier: GPL-2.0
/*
 * What mlock(2) and madvise(2) say of ranges is found again in the VmFlags of smaps,
 * and has its effects in a child.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define LENGTH	(4 * 4096)
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK	18
#endif

static const struct {
	int advice;	/* 0: mlock; -1: none */
	const char *flag;
} kinds[] = {
	{ -1, "" }, { 0, " lo" }, { MADV_DONTFORK, " dc" }, { MADV_WIPEONFORK, " wf" },
	{ MADV_DONTDUMP, " dd" }, { MADV_MERGEABLE, " mg" }, { MADV_NOHUGEPAGE, " nh" },
	{ MADV_HUGEPAGE, " hg" }, { MADV_SEQUENTIAL, " sr" }, { MADV_RANDOM, " rr" },
};
#define COUNT	(sizeof(kinds) / sizeof(*kinds))

static const char *flags_of(const char *address)
{
	static char text[1 << 20], line[256];
	char start[32];
	const char *at;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)address);
	check_slurp("/proc/self/smaps", text, sizeof(text));
	at = strstr(text, start);
	at = at ? strstr(at, "VmFlags:") : NULL;
	line[0] = '\0';
	if (at)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	return line;
}

int main(int argc, char **argv)
{
	char *map[COUNT], before[COUNT][256];
	bool have[COUNT];
	int status;
	pid_t child;

	check_begin(argc, argv);
	for (size_t i = 0; i < COUNT; i++) {
		map[i] = mmap(NULL, 3 * LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(map[i] != MAP_FAILED);
		map[i] += LENGTH;
		NEED(!mprotect(map[i], LENGTH, PROT_READ | PROT_WRITE));
		check_fill(map[i], LENGTH, i);
		have[i] = kinds[i].advice < 0 ||
			  !(kinds[i].advice ? madvise(map[i], LENGTH, kinds[i].advice) :
					      mlock(map[i], LENGTH));
		strcpy(before[i], flags_of(map[i]));
		NEED(!have[i] || strstr(before[i], kinds[i].flag));
	}
	check_ready();
	check_wait();
	for (size_t i = 0; i < COUNT; i++) {
		char sd_less[256], now[256];

		CHECK(check_filled(map[i], LENGTH, i));
		strcpy(now, flags_of(map[i]));
		strcpy(sd_less, before[i]);
		/* soft-dirty is the kernel's own business */
		if (strstr(sd_less, " sd"))
			memmove(strstr(sd_less, " sd"), strstr(sd_less, " sd") + 3,
				strlen(strstr(sd_less, " sd") + 3) + 1);
		if (strstr(now, " sd"))
			memmove(strstr(now, " sd"), strstr(now, " sd") + 3,
				strlen(strstr(now, " sd") + 3) + 1);
		if (strcmp(now, sd_less))
			fprintf(stderr, "# %s became %s\n", sd_less, now);
		CHECK(!strcmp(now, sd_less));
	}
	child = fork();
	if (!child) {
		CHECK(!have[3] || map[3][0] == 0);
		CHECK(!have[2] || (msync(map[2], LENGTH, MS_ASYNC) < 0 && errno == ENOMEM));
		_exit(check_end());
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return check_end();
}
