/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that is interrupted for its signal-context callback while it has a
 * lock, and a thread-context callback that takes that lock after the checkpoint.
 */
#include <libcr.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tests/programs/check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, rounds;
static atomic_bool stop;

static int takes_lock(void *arg)
{
	(void)arg;
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	pthread_mutex_lock(&lock);
	rounds++;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int in_signal(void *arg)
{
	(void)arg;
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	return 0;
}

static void *work(void *arg)
{
	NEED(cr_init() >= 0);
	NEED(cr_register_callback(in_signal, NULL, CR_SIGNAL_CONTEXT) >= 0);
	begun = 1;
	while (!stop) {
		pthread_mutex_lock(&lock);
		usleep(50000);
		pthread_mutex_unlock(&lock);
		usleep(1);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(cr_init() == 0);
	NEED(cr_register_callback(takes_lock, NULL, CR_THREAD_CONTEXT) >= 0);
	NEED(!pthread_create(&thread, NULL, work, NULL));
	while (!begun)
		usleep(1000);
	check_ready();
	check_wait();
	stop = true;
	pthread_join(thread, NULL);
	CHECK(rounds > 0);
	return check_end();
}
