// SPDX-License-Identifier: GPL-2.0
/*
 * How long a call keeps others from its processor (latency).  A watcher with real-time
 * priority wakes every millisecond on the processor that the calls are made on; its
 * maximum delay is printed, in milliseconds, for `threads COUNT`: PARK and RELEASE of a
 * process with COUNT threads; `runs COUNT`: READ of COUNT runs without pages; `spin MS`:
 * no calls for that time, which is the machine's own latency.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/programs/job.h"

#define STEP_NS		1000000
#define STACK		16384

static long *worst_ns;
static volatile int *watching;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pin(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	NEED(!sched_setaffinity(0, sizeof(first), &first));
}

static void watch(void)
{
	struct sched_param priority = { .sched_priority = 50 };
	struct timespec step = { .tv_nsec = STEP_NS };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	NEED(!sched_setscheduler(0, SCHED_FIFO, &priority));
	for (;;) {
		long start = now_ns(), late;

		nanosleep(&step, NULL);
		late = now_ns() - start - STEP_NS;
		if (*watching && late > *worst_ns)
			*worst_ns = late;
	}
}

static pid_t start_watcher(void)
{
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	NEED(shared != MAP_FAILED);
	worst_ns = (long *)shared;
	watching = (int *)(shared + 64);
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		pin();
		watch();
	}
	return pid;
}

/* The best of several tries: others may occupy the machine for a while. */
static void tell(void (*act)(void))
{
	long best = 0;

	for (int i = 0; i < 3; i++) {
		*worst_ns = 0;
		*watching = 1;
		act();
		check_sleep_ms(5);
		*watching = 0;
		if (!i || *worst_ns < best)
			best = *worst_ns;
	}
	printf("%ld\n", best / 1000000);
}

static int job;

static void park_and_release(void)
{
	CHECK(!job_park(job, 600000, NULL));
	CHECK(!job_release(job, 0));
}

static __attribute__((noreturn)) void *sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void be_many(int count, int ready)
{
	pthread_attr_t attr;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	NEED(!pthread_attr_setstacksize(&attr, STACK));
	while (--count)
		NEED(!pthread_create(&thread, &attr, sleep_on, NULL));
	NEED(write(ready, "", 1) == 1);
	sleep_on(NULL);
}

static pid_t add_member(int count)
{
	int ready[2];
	char byte;
	pid_t pid;

	NEED(!pipe(ready));
	pid = fork();
	NEED(pid >= 0);
	if (!pid)
		be_many(count, ready[1]);
	NEED(read(ready[0], &byte, 1) == 1 && !job_add(job, pid));
	return pid;
}

static int spin_ms;

static void spin(void)
{
	long end = now_ns() + spin_ms * 1000000L;

	while (now_ns() < end)
		;
}

static struct kcr_pages pages = { .size = sizeof(pages), .fd = -1 };

static void read_nothing(void)
{
	CHECK(!job_call(job, KCR_IOC_READ, &pages));
}

int main(int argc, char **argv)
{
	pid_t watcher, member;
	int count;

	NEED(argc == 3);
	count = atoi(argv[2]);
	watcher = start_watcher();
	job = job_open();
	NEED(job >= 0);
	if (!strcmp(argv[1], "threads")) {
		member = add_member(count);
		pin();
		tell(park_and_release);
	} else if (!strcmp(argv[1], "spin")) {
		member = add_member(1);
		spin_ms = count;
		pin();
		tell(spin);
	} else {
		member = add_member(1);
		NEED(!job_park(job, 0, NULL));
		pages.pid = member;
		pages.count = count;
		pages.runs = (uintptr_t)mmap(NULL, count * sizeof(struct kcr_run), PROT_READ,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		NEED(pages.runs != (uintptr_t)MAP_FAILED);
		pin();
		tell(read_nothing);
	}
	job_kill(member);
	job_kill(watcher);
	return !!check_failures;
}
