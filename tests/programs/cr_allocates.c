/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads with signal-context callbacks allocate and free all the time, another one forks: a
 * checkpoint interrupts them with the locks of malloc(3) in their hands, and still comes to an end.
 */
#include <libcr.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define NR_THREADS	6

static atomic_bool stop;
static atomic_int begun;

static int callback(void *arg)
{
	(void)arg;
	return cr_checkpoint(CR_CHECKPOINT_READY) < 0;
}

static void *allocate(void *unused)
{
	void *memory[16] = {};

	NEED(cr_init() >= 0);
	NEED(cr_register_callback(callback, NULL, CR_SIGNAL_CONTEXT) >= 0);
	begun++;
	for (unsigned int i = 0; !stop; i++) {
		free(memory[i % 16]);
		memory[i % 16] = malloc(60000 + i * 7919 % 60000);	/* not from a thread's cache */
	}
	for (int i = 0; i < 16; i++)
		free(memory[i]);
	return unused;
}

static void *forks(void *unused)
{
	begun++;
	while (!stop) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		CHECK(child > 0 && waitpid(child, NULL, 0) == child);
		usleep(10000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_THREADS + 1];

	check_begin(argc, argv);
	NEED(cr_init() >= 0);
	for (int i = 0; i < NR_THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, allocate, NULL));
	NEED(!pthread_create(&thread[NR_THREADS], NULL, forks, NULL));
	while (begun <= NR_THREADS)
		usleep(1000);
	check_ready();
	check_wait();
	stop = true;
	for (int i = 0; i <= NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	return check_end();
}
