// SPDX-License-Identifier: GPL-2.0
/*
 * Four threads that write to their pages at full speed, without a pause in which an
 * increment could be made undisturbed.  Each notes in shared memory, which increments
 * save as a whole, what it is going to write; so at any moment a page is what was noted,
 * or its thread is writing it.  In the end all must be what was noted.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

#define PAGE	4096ul
#define THREADS	4u
#define PAGES	1024u		/* of each thread … */
#define BUSY	96u		/* … and how many it writes to before it goes on to others, … */
#define TURN	(1u << 23)	/* … after so many writes */

static uint64_t (*arena)[PAGES][PAGE / sizeof(uint64_t)];
static uint64_t (*noted)[PAGES];

static void fill(volatile uint64_t *page, uint64_t value)
{
	for (size_t i = 0; i < PAGE / sizeof(*page); i += 8)
		page[i] = value + i;
}

static bool is_filled(const uint64_t *page, uint64_t value)
{
	for (size_t i = 0; i < PAGE / sizeof(*page); i += 8)
		if (page[i] != value + i)
			return false;
	return true;
}

static void *write_on(void *argument)
{
	size_t thread = (uintptr_t)argument;
	uint32_t random = thread + 1;
	uint64_t value = 1;

	while (!check_gone()) {
		uint32_t first = (value / TURN * BUSY) % (PAGES - BUSY);

		for (unsigned int i = 0; i < 512; i++, value++) {
			uint32_t page;

			random = random * 1664525u + 1013904223u;
			page = first + (random >> 8) % BUSY;
			__atomic_store_n(&noted[thread][page], value, __ATOMIC_SEQ_CST);
			fill(arena[thread][page], value);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	check_begin(argc, argv);
	arena = mmap(NULL, THREADS * sizeof(*arena), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	noted = mmap(NULL, THREADS * sizeof(*noted), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(arena != MAP_FAILED && noted != MAP_FAILED);
	/* Half of it has pages that are told apart, whatever the kernel makes of the rest. */
	NEED(!madvise(arena, THREADS / 2 * sizeof(*arena), MADV_NOHUGEPAGE));
	for (size_t t = 0; t < THREADS; t++)
		for (size_t page = 0; page < PAGES; page++)
			fill(arena[t][page], 0);
	for (uintptr_t t = 0; t < THREADS; t++)
		NEED(!pthread_create(&thread[t], NULL, write_on, (void *)t));
	check_ready();
	for (size_t t = 0; t < THREADS; t++)
		CHECK(!pthread_join(thread[t], NULL));
	for (size_t t = 0; t < THREADS; t++)
		for (size_t page = 0; page < PAGES; page++)
			CHECK(is_filled(arena[t][page], noted[t][page]));
	return check_end();
}
