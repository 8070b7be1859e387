// SPDX-License-Identifier: GPL-2.0
/*
 * windows: two ranks; threads of both get, put and accumulate at the same time, each in a window
 * of its own, in pieces larger than a fragment of any transport.  Prints "done" if all was right.
 * windows stores: rank 0 gets what rank 1 writes to all the time, whatever it gets.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS	2
#define ROUNDS	30
#define SIZE	300000l		/* bytes */

static MPI_Win window[THREADS];
static int rank, wrong;

static void *run(void *arg)
{
	long i = (long)arg;
	char *buffer = malloc(SIZE);
	int peer = !rank;

	for (int round = 0; round < ROUNDS; round++) {
		memset(buffer, 0, SIZE);
		MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window[i]);
		MPI_Get(buffer, SIZE, MPI_CHAR, peer, 0, SIZE, MPI_CHAR, window[i]);
		MPI_Win_unlock(peer, window[i]);
		for (long at = 0; at < SIZE; at++)
			if (buffer[at] != 'a' + peer)
				__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window[i]);
		MPI_Put(buffer, SIZE, MPI_CHAR, peer, SIZE, SIZE, MPI_CHAR, window[i]);
		MPI_Accumulate(buffer, SIZE / 8, MPI_LONG, peer, 2 * SIZE, SIZE / 8, MPI_LONG, MPI_MAX,
			       window[i]);
		MPI_Win_unlock(peer, window[i]);
	}
	free(buffer);
	return NULL;
}

static volatile int over;

static void *store(void *arg)
{
	volatile long *at = arg;

	while (!over)
		for (long i = 0; i < SIZE / 8; i++)
			at[i]++;
	return NULL;
}

static int get_from_storing(int argc, char **argv)
{
	char *memory, *buffer = malloc(SIZE);
	pthread_t thread;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_allocate(SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window[0]);
	if (rank)
		pthread_create(&thread, NULL, store, memory);
	for (int round = 0; round < ROUNDS * 10 && !rank; round++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window[0]);
		MPI_Get(buffer, SIZE, MPI_CHAR, 1, 0, SIZE, MPI_CHAR, window[0]);
		MPI_Win_unlock(1, window[0]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	over = 1;
	if (rank)
		pthread_join(thread, NULL);
	else
		puts("done");
	MPI_Win_free(&window[0]);
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	char *memory[THREADS];
	int level, ranks;

	if (argc > 1)
		return get_from_storing(argc, argv);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ranks != 2 || level != MPI_THREAD_MULTIPLE)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < THREADS; i++) {
		MPI_Win_allocate(3 * SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &window[i]);
		memset(memory[i], 'a' + rank, 3 * SIZE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < THREADS; i++) {
		for (long at = SIZE; at < 3 * SIZE; at++)
			wrong += memory[i][at] != 'a' + rank;	/* what the peer had got from here */
		MPI_Win_free(&window[i]);
	}
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		puts(wrong ? "wrong" : "done");
	MPI_Finalize();
	return 0;
}
