/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything at once: threads enter and leave critical sections, fork, exec,
 * register callbacks of both contexts and end, while checkpoints and restarts
 * go on.  In a callback what critical sections guard is consistent.
 */
#include <libcr.h>

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define NR_PAIRS	3

static volatile long one[NR_PAIRS], other[NR_PAIRS];
static atomic_bool stop;
static atomic_int called;
extern char **environ;

static int callback(void *arg)
{
	int ret;

	(void)arg;
	for (int i = 0; i < NR_PAIRS; i++)
		CHECK(one[i] == other[i]);
	called++;
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(ret >= 0 || ret == -ECANCELED);
	for (int i = 0; i < NR_PAIRS; i++)
		CHECK(one[i] == other[i]);
	return 0;
}

static int in_signal_context(void *arg)
{
	atomic_int *depth = arg;

	CHECK(++*depth == 1);
	cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(--*depth == 0);
	return 0;
}

static void *enter_and_leave(void *arg)
{
	long i = (long)arg;
	cr_client_id_t id = cr_init();

	while (!stop) {
		CHECK(cr_enter_cs(id) == 0);
		one[i]++;
		if (one[i] % 64 == 0)
			sched_yield();
		other[i]++;
		CHECK(cr_leave_cs(id) == 0);
		if (one[i] % 1024 == 0)
			usleep(500);
	}
	return NULL;
}

static void *come_and_go(void *arg)
{
	static __thread atomic_int depth;	/* a callback may come to the very end */

	(void)arg;
	depth = 0;
	CHECK(cr_init() >= 0);
	CHECK(cr_register_callback(in_signal_context, &depth, CR_SIGNAL_CONTEXT) >= 0);
	for (int i = 0; i < 20 && !stop; i++)
		usleep(2000);
	return NULL;
}

static void *make_threads(void *arg)
{
	pthread_t thread;

	while (!stop) {
		if (pthread_create(&thread, NULL, come_and_go, NULL))
			continue;
		pthread_join(thread, NULL);
	}
	return arg;
}

static void child(void)
{
	cr_client_id_t id = cr_init();

	CHECK(id == 0);
	for (int i = 0; i < NR_PAIRS; i++)
		one[i] = other[i] = 0;
	CHECK(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	for (int i = 0; i < 50; i++) {
		CHECK(cr_enter_cs(id) == 0);
		one[0]++;
		usleep(500);
		other[0]++;
		CHECK(cr_leave_cs(id) == 0);
	}
	_exit(check_end());
}

static void *make_processes(void *arg)
{
	static char *const command[] = { "true", NULL };
	int status;
	pid_t pid;

	while (!stop) {
		pid = fork();
		if (!pid)
			child();
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
		if (!posix_spawn(&pid, "/bin/true", NULL, NULL, command, environ))
			CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_PAIRS + 2];

	check_begin(argc, argv);
	NEED(cr_init() == 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	for (long i = 0; i < NR_PAIRS; i++)
		NEED(!pthread_create(&thread[i], NULL, enter_and_leave, (void *)i));
	NEED(!pthread_create(&thread[NR_PAIRS], NULL, make_threads, NULL));
	NEED(!pthread_create(&thread[NR_PAIRS + 1], NULL, make_processes, NULL));
	check_ready();
	while (!check_gone())
		usleep(20000);
	stop = true;
	for (int i = 0; i < NR_PAIRS + 2; i++)
		pthread_join(thread[i], NULL);
	CHECK(called);
	return check_end();
}
