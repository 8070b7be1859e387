// SPDX-License-Identifier: GPL-2.0
/*
 * A robust mutex: when the thread that holds it dies after the restart, the kernel
 * still finds it in the thread's list.
 */
#include <pthread.h>

#include "check.h"

static pthread_mutex_t mutex;
static pthread_barrier_t barrier;

static void *die_with_it(void *argument)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	check_wait();
	return argument;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attribute;
	pthread_t thread;

	check_begin(argc, argv);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_mutexattr_init(&attribute);
	pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &attribute);
	NEED(!pthread_create(&thread, NULL, die_with_it, NULL));
	pthread_barrier_wait(&barrier);
	check_ready();
	CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
	CHECK(!pthread_mutex_consistent(&mutex) && !pthread_mutex_unlock(&mutex));
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
