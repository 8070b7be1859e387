// SPDX-License-Identifier: GPL-2.0
/*
 * callbacks STEPS [FILE]: the program `job` in small, with callbacks of libcr in thread and
 * in signal context; another thread never stops to ask for a variable of the
 * environment.  Each rank says how often its callbacks saw it go on and restart.
 * Rank 0 waits in the middle until there is FILE.
 */
#include <libcr.h>

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int went_on[2], restarted[2];
static atomic_bool stop;

static int callback(void *context)
{
	int which = *(int *)context, result = cr_checkpoint(CR_CHECKPOINT_READY);

	if (result < 0)
		_exit(1);
	atomic_fetch_add(result ? &restarted[which] : &went_on[which], 1);
	return 0;
}

static void *ask_environment(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		const char *home = getenv("KCR_TEST_WORD");

		if (!home || strcmp(home, "unchanged"))
			abort();
		usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static int which[2] = { 0, 1 };
	int rank, steps = argc > 1 ? atoi(argv[1]) : 100;
	pthread_t thread;
	long sum = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	setenv("KCR_TEST_WORD", "unchanged", 1);
	if (cr_init() < 0 ||
	    cr_register_callback(callback, &which[0], CR_THREAD_CONTEXT) < 0 ||
	    cr_register_callback(callback, &which[1], CR_SIGNAL_CONTEXT) < 0)
		MPI_Abort(MPI_COMM_WORLD, 1);
	pthread_create(&thread, NULL, ask_environment, NULL);
	for (int i = 0; i < steps; i++) {
		long mine = sum * 31 + rank + i;

		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		if (i == 0 && rank == 0)
			fprintf(stderr, "running\n");
		do
			usleep(10000);
		while (rank == 0 && i == steps / 2 && argc > 2 && access(argv[2], F_OK));
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++)
		printf("rank %d %s: %d %d\n", rank, i ? "signal" : "thread", went_on[i], restarted[i]);
	MPI_Finalize();
	if (rank == 0)
		printf("result %lx\n", sum);
	return 0;
}
