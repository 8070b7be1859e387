/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs of which one thread sleeps in the system call that the argument
 * names while it all happens; then the first thread lets it go on.  No call may
 * end before, none with EINTR, and each must give what it would have given.
 */
#ifndef KCR_TESTS_BLOCKING_H
#define KCR_TESTS_BLOCKING_H

#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

struct call {
	const char *name;
	void (*set_up)(void);
	void (*sleep)(void);
	void (*wake)(void);
};

static int ends[2];
static pthread_t sleeper;

/* ---- what several of them use ---- */

static inline void pipe_wake(void) { CHECK(write(ends[1], "ab", 2) == 2); }
static inline void got_ab(void)
{
	char two[3] = "";

	CHECK(read(ends[0], two, 2) == 2 && !strcmp(two, "ab"));
}

static inline void do_read_8(void)
{
	uint64_t value = 0;

	CHECK(read(ends[0], &value, 8) == 8 && value == 1);
}

/* ---- the frame ---- */

static volatile pid_t tid;

static inline void *sleep_in(void *argument)
{
	const struct call *call = argument;

	tid = syscall(SYS_gettid);
	call->sleep();
	return argument;
}

/* Waits until the thread sleeps, or has ended as its time was up. */
static inline void wait_asleep(void)
{
	char name[64], text[512];

	for (int quiet = 0; quiet < 5;) {
		const char *end;

		check_sleep_ms(10);
		snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
		end = strrchr(check_slurp(name, text, sizeof(text)), ')');
		quiet = !end || end[2] == 'S' ? quiet + 1 : 0;
	}
}

/* calls: up to one without a name. */
static inline int blocking_main(int argc, char **argv, const struct call *call)
{
	check_begin(argc, argv);
	if (argc < 4) {
		for (; call->name; call++)
			puts(call->name);
		return 2;
	}
	while (call->name && strcmp(call->name, argv[3]))
		call++;
	NEED(call->name);
	call->set_up();
	NEED(!pthread_create(&sleeper, NULL, sleep_in, (void *)call));
	while (!tid)
		check_sleep_ms(1);
	wait_asleep();
	check_ready();
	check_wait();
	wait_asleep();
	call->wake();
	CHECK(!pthread_join(sleeper, NULL));
	return check_end();
}

#endif /* KCR_TESTS_BLOCKING_H */
