// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduling class, nice value and processors, different in each of three threads; the nice
 * value of the session.  With the argument `deadline` two threads for each processor have 40 % of
 * it (SCHED_DEADLINE), and all but one of them in the end.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

static pthread_barrier_t barrier;

static void *idle(void *argument)
{
	struct sched_param parameter = { 0 };

	NEED(!sched_setscheduler(0, SCHED_IDLE, &parameter));
	pthread_barrier_wait(&barrier);
	check_wait();
	CHECK(sched_getscheduler(0) == SCHED_IDLE);
	return argument;
}

static void *bound(void *argument)
{
	cpu_set_t cpus, now;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	NEED(!sched_setaffinity(0, sizeof(cpus), &cpus));
	NEED(!setpriority(PRIO_PROCESS, syscall(SYS_gettid), 11));
	pthread_barrier_wait(&barrier);
	check_wait();
	CHECK(!sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&cpus, &now));
	CHECK(getpriority(PRIO_PROCESS, syscall(SYS_gettid)) == 11);
	return argument;
}

static void *realtime(void *argument)
{
	struct sched_param parameter = { .sched_priority = 2 }, now;
	bool may = !sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameter);

	pthread_barrier_wait(&barrier);
	check_wait();
	if (may) {
		CHECK(sched_getscheduler(0) == (SCHED_RR | SCHED_RESET_ON_FORK));
		CHECK(!sched_getparam(0, &now) && now.sched_priority == 2);
	}
	return argument;
}

#define MS		1000000ull
#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE	6
#endif

static atomic_int nr_deadlines;

static void *deadline(void *argument)
{
	/* As <linux/sched/types.h>, which cannot be included beside <sched.h>. */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} wanted = {
		.size = sizeof(wanted), .policy = SCHED_DEADLINE, .runtime = 40 * MS,
		.deadline = 100 * MS, .period = 100 * MS,
	};

	if (syscall(SYS_sched_setattr, 0, &wanted, 0))
		check_skip("this machine has no room for deadlines");
	pthread_barrier_wait(&barrier);
	check_wait();
	nr_deadlines += sched_getscheduler(0) == SCHED_DEADLINE;
	return argument;
}

static void *ordinary(void *argument)
{
	check_wait();
	return argument;
}

/* The ordinary threads are between the others, so that a restart is busy meanwhile. */
static int deadlines(void)
{
	long count = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread[4], other[30];

	if (count > 4)
		check_skip("there is too much room for deadlines");
	pthread_barrier_init(&barrier, NULL, count + 1);
	for (int i = 0; i < count; i++) {
		NEED(!pthread_create(&thread[i], NULL, deadline, NULL));
		for (int k = 0; !i && k < 30; k++)
			NEED(!pthread_create(&other[k], NULL, ordinary, NULL));
	}
	pthread_barrier_wait(&barrier);
	check_ready();
	for (int i = 0; i < count; i++)
		NEED(!pthread_join(thread[i], NULL));
	for (int k = 0; k < 30; k++)
		NEED(!pthread_join(other[k], NULL));
	CHECK(nr_deadlines == count - 1);
	return check_end();
}

static bool session_has(const char *nice)
{
	char text[64];

	return strstr(check_slurp("/proc/self/autogroup", text, sizeof(text)), nice);
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = { idle, bound, realtime };
	cpu_set_t cpus, now;
	int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	pthread_t thread[3];

	check_begin(argc, argv);
	if (argc > 3)
		return deadlines();
	NEED(group < 0 || (write(group, "5", 1) == 1 && session_has(" nice 5\n")));
	pthread_barrier_init(&barrier, NULL, 4);
	NEED(!sched_getaffinity(0, sizeof(cpus), &cpus));
	for (int i = 0; i < 3; i++)
		NEED(!pthread_create(&thread[i], NULL, work[i], NULL));
	pthread_barrier_wait(&barrier);
	check_ready();
	check_wait();
	CHECK(group < 0 || session_has(" nice 5\n"));
	CHECK(sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 0);
	CHECK(!sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&cpus, &now));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return check_end();
}
