// SPDX-License-Identifier: GPL-2.0
/*
 * Three processes that take turns, each writing the number of the turn to all its
 * private pages and to shared ones.  A picture that mixes two moments shows: pages
 * of different turns, or processes that disagree about whose turn it is.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define PAGES	256
#define PROCESSES	3
#define WORDS	512	/* 64-bit words of a page */

static volatile uint64_t *shared, *private;

static void wait_turn(uint32_t number, uint64_t process)
{
	volatile uint32_t *turn = (volatile uint32_t *)&shared[PAGES * WORDS];

	for (;;) {
		uint32_t now = *turn;

		if (now % PROCESSES == process && (now >= number || check_failures))
			return;
		syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
	}
}

static int take_turns(uint64_t process)
{
	volatile uint32_t *turn = (volatile uint32_t *)&shared[PAGES * WORDS];
	volatile uint64_t *stop = &shared[PAGES * WORDS + 8];
	uint64_t own = 0;

	for (;;) {
		wait_turn(0, process);
		for (int page = 0; page < PAGES; page++)
			if (private[page * WORDS + 7] != own ||
			    shared[page * WORDS] != (*turn ? *turn - 1 : 0)) {
				CHECK(private[page * WORDS + 7] == own);
				CHECK(shared[page * WORDS] == (*turn ? *turn - 1 : 0));
				*stop = 1;
				break;
			}
		own = *turn;
		for (int page = 0; page < PAGES; page++) {
			private[page * WORDS + 7] = own;
			shared[page * WORDS] = own;
		}
		if (process == 0 && check_gone())
			*stop = *stop ? *stop : own + PROCESSES;
		__atomic_add_fetch(turn, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, turn, FUTEX_WAKE, 1000, NULL, NULL, 0);
		if (*stop && own >= *stop - PROCESSES + process)
			return check_end();
	}
}

int main(int argc, char **argv)
{
	pid_t child[PROCESSES];
	int status;

	check_begin(argc, argv);
	shared = mmap(NULL, (PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	private = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	NEED(shared != MAP_FAILED && private != MAP_FAILED);
	for (uint64_t i = 1; i < PROCESSES; i++) {
		child[i] = fork();
		NEED(child[i] >= 0);
		if (!child[i])
			_exit(take_turns(i));
	}
	check_ready();
	take_turns(0);
	for (int i = 1; i < PROCESSES; i++)
		CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
	return check_end();
}
