// SPDX-License-Identifier: GPL-2.0
/*
 * Four threads that write rounds to pages of their own all the time, with DONTFORK,
 * WIPEONFORK and shared ranges among them: after a restart from a snapshot every
 * page is of the round that its thread was in.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

#define PAGES	128
#define WORDS	512

static void *work(void *argument)
{
	int kind = (int)(uintptr_t)argument;
	int flags = MAP_ANONYMOUS | (kind == 3 ? MAP_SHARED : MAP_PRIVATE);
	volatile uint64_t *map = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, flags, -1, 0);

	NEED(map != MAP_FAILED);
	if (kind == 1)
		NEED(!madvise((void *)map, PAGES * 4096, MADV_DONTFORK));
	if (kind == 2)
		NEED(!madvise((void *)map, PAGES * 4096, MADV_WIPEONFORK));
	for (uint64_t round = 0; !check_gone() && !check_failures; round++) {
		for (int page = 0; page < PAGES; page++) {
			if (map[page * WORDS + page] != round)
				CHECK(map[page * WORDS + page] == round);
			map[page * WORDS + page] = round + 1;
		}
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread[4];

	check_begin(argc, argv);
	for (uintptr_t i = 0; i < 4; i++)
		NEED(!pthread_create(&thread[i], NULL, work, (void *)i));
	check_sleep_ms(100);
	check_ready();
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return check_end();
}
