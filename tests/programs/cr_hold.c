/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hold barrier.  Three threads count: one with the settings for threads that
 * called cr_init(), one with its own, one that knows nothing of libcr.  While
 * callbacks go on after a checkpoint or a restart, a thread counts on if it is
 * not held.  The arguments are the three settings as numbers (CR_HOLD_*).
 */
#include <libcr.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tests/programs/check.h"

#define NR_THREADS	3

static atomic_long counter[NR_THREADS];
static atomic_bool stop;
static int hold[NR_THREADS], log_fd;

static int callback(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);
	int held = ret > 0 ? CR_HOLD_RSTRT : CR_HOLD_CONT;
	long before[NR_THREADS];

	(void)arg;
	CHECK(ret >= 0);
	for (int i = 0; i < NR_THREADS; i++)
		before[i] = counter[i];
	usleep(300000);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!(hold[i] & held) || counter[i] == before[i]);
	/* Who is free may be slow; those that are held would go on after 5 s. */
	for (int i = 0; i < NR_THREADS; i++) {
		for (int n = 0; !(hold[i] & held) && counter[i] == before[i] && n < 300; n++)
			usleep(10000);
		CHECK(hold[i] & held || counter[i] != before[i]);
	}
	dprintf(log_fd, "%s\n", ret > 0 ? "restarted" : "continued");
	return 0;
}

static void *count(void *arg)
{
	long i = (long)arg;

	if (i < 2)
		NEED(cr_init() >= 0);
	if (i == 1)
		CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, hold[1]) == CR_HOLD_DFLT);
	while (!stop) {
		counter[i]++;
		usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_THREADS];

	check_begin(argc, argv);
	NEED(argc == 3 + NR_THREADS);
	NEED((log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0);
	for (int i = 0; i < NR_THREADS; i++)
		hold[i] = atoi(argv[3 + i]);
	NEED(cr_init() == 0);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, hold[0]) == CR_HOLD_BOTH);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_UNINIT, hold[2]) == CR_HOLD_BOTH);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	for (long i = 0; i < NR_THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, count, (void *)i));
	while (!counter[0] || !counter[1] || !counter[2])
		usleep(1000);
	check_ready();
	while (!check_gone())
		usleep(20000);
	stop = true;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	return check_end();
}
