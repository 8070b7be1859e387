// SPDX-License-Identifier: GPL-2.0
/*
 * MPI_THREAD_MULTIPLE: in the pause each rank has threads that wait inside of calls of MPI, for what
 * comes behind it.  See features.h.
 */
#include "features.h"

#include <pthread.h>
#include <string.h>

#define THREADS	4
#define LARGE	40000

static MPI_Comm comm, gathering;
static pthread_t thread[THREADS];
static int in[THREADS][LARGE], out[LARGE], sum;

static void open_all(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &gathering);
}

static void close_all(void)
{
	MPI_Comm_free(&comm);
	MPI_Comm_free(&gathering);
}

static void *receive(void *arg)
{
	int number = *(int *)arg;

	MPI_Recv(in[number], LARGE, MPI_INT, previous(), number, comm, MPI_STATUS_IGNORE);
	return NULL;
}

static void *probe(void *arg)
{
	int number = *(int *)arg;
	MPI_Message message;

	MPI_Mprobe(MPI_ANY_SOURCE, number, comm, &message, MPI_STATUS_IGNORE);
	MPI_Mrecv(in[number], LARGE, MPI_INT, &message, MPI_STATUS_IGNORE);
	return NULL;
}

/* It waits for a thread of the rank that joins late. */
static void *reduce(void *arg)
{
	(void)arg;
	MPI_Allreduce(&(int){ rank + 1 }, &sum, 1, MPI_INT, MPI_SUM, gathering);
	return NULL;
}

static void *send_synchronously(void *arg)
{
	int number = *(int *)arg;

	MPI_Ssend(out, LARGE, MPI_INT, next(), number, comm);
	return NULL;
}

static void threads_begin(int round)
{
	static int numbers[THREADS] = { 0, 1, 2, 3 };

	fill(out, LARGE, round * 100 + rank);
	pthread_create(&thread[0], NULL, receive, &numbers[0]);
	pthread_create(&thread[1], NULL, probe, &numbers[1]);
	if (rank != late(round))
		pthread_create(&thread[2], NULL, reduce, NULL);
	pthread_create(&thread[3], NULL, send_synchronously, &numbers[3]);
}

static void threads_end(int round)
{
	int provided, main_thread;

	MPI_Query_thread(&provided);
	MPI_Is_thread_main(&main_thread);
	CHECK(provided == MPI_THREAD_MULTIPLE && main_thread);
	if (rank == late(round))
		pthread_create(&thread[2], NULL, reduce, NULL);
	MPI_Send(out, LARGE, MPI_INT, next(), 1, comm);
	MPI_Send(out, LARGE, MPI_INT, next(), 0, comm);
	MPI_Recv(in[3], LARGE, MPI_INT, previous(), 3, comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(sum == size * (size + 1) / 2);
	for (int i = 0; i < THREADS; i++)
		CHECK(i == 2 || filled(in[i], LARGE, round * 100 + previous()));
	memset(in, 0, sizeof(in));
	sum = 0;
}

const struct feature thread_features[] = {
	{ "threads", threads_begin, threads_end, open_all, close_all },
	{ 0 }
};
