// SPDX-License-Identifier: GPL-2.0
/*
 * Three hundred threads (or as many as the argument says), each with thread-local
 * data, a name and a number of its own, wait for a condition; all wake up, check
 * themselves and can be joined, and new ones can be made.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, started = PTHREAD_COND_INITIALIZER;
static int nr_started;
static bool go;
static __thread uint64_t own[64];

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	pid_t tid = syscall(SYS_gettid);
	char name[16], now[16];

	snprintf(name, sizeof(name), "thread %d", (int)number);
	prctl(PR_SET_NAME, name);
	check_fill(own, sizeof(own), number);
	pthread_mutex_lock(&mutex);
	nr_started++;
	pthread_cond_signal(&started);
	while (!go)
		pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
	CHECK(check_filled(own, sizeof(own), number));
	CHECK(syscall(SYS_gettid) == tid);
	CHECK(prctl(PR_GET_NAME, now) == 0 && !strcmp(now, name));
	return argument;
}

static void *return_it(void *argument)
{
	return argument;
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[3]) : 300;
	pthread_t *threads = calloc(count, sizeof(*threads));
	pthread_attr_t attribute;
	void *result;

	check_begin(argc, argv);
	pthread_attr_init(&attribute);
	pthread_attr_setstacksize(&attribute, 64 << 10);
	for (int i = 0; i < count; i++)
		NEED(!pthread_create(&threads[i], &attribute, work, (void *)(uintptr_t)i));
	pthread_mutex_lock(&mutex);
	while (nr_started < count)
		pthread_cond_wait(&started, &mutex);
	pthread_mutex_unlock(&mutex);
	check_ready();
	check_wait();
	pthread_mutex_lock(&mutex);
	go = true;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < count; i++)
		CHECK(!pthread_join(threads[i], &result) && result == (void *)(uintptr_t)i);
	CHECK(!pthread_create(&threads[0], NULL, return_it, &mutex));
	CHECK(!pthread_join(threads[0], &result) && result == &mutex);
	return check_end();
}
