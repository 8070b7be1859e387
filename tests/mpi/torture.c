// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic of all kinds with every byte checked, for SECONDS, or until there is a
 * FILE (with a slash in its name), by THREADS threads per rank:
 * torture SECONDS|FILE [THREADS].  With a driver (driver.h) checkpoints go
 * on underneath.  Fails on a wrong byte, and if the driver never came round.
 * One-sided communication takes part where components for it are chosen, as in jobs that
 * can be checkpointed, without threads.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define RANKS 64
#define LONGEST 1500000
#define MIN_ROUNDS 3	/* of the driver, if there is one */

static int rank, size;
static double seconds;
static const char *file;	/* instead of them */
static atomic_ulong bad, steps;
static int driven;

/* One thread's, if there are windows at all: the neighbour's bytes, all ranks' count. */
static bool windows;
static MPI_Win bytes, counter;
static unsigned char *written;
static uint64_t *count;

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	int id;
	unsigned int step;
	unsigned char *out[RANKS], *in[RANKS];
};

static const int lengths[] = {
	0, 1, 8, 50, 100, 700, 4000, 4090, 4200, 16000, 33000, 65000, 65536, 70000, 131072,
	300000, LONGEST,
};
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

static uint32_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t x = a * 2654435761u ^ b * 2246822519u ^ c * 3266489917u;

	x ^= x >> 15;
	x *= 2246822519u;
	return x ^ x >> 13;
}

static int length_of(const struct worker *w, uint32_t what)
{
	return lengths[mixed(w->step, what, w->id) % LENGTHS];
}

static void fill(unsigned char *data, int length, uint32_t seed)
{
	uint32_t x = seed | 1;

	for (int i = 0; i < length; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = x >> 24;
	}
}

static void verify(const unsigned char *data, int length, uint32_t seed, const char *what)
{
	uint32_t x = seed | 1;

	for (int i = 0; i < length; i++) {
		x = x * 1664525u + 1013904223u;
		if (data[i] != (unsigned char)(x >> 24)) {
			fprintf(stderr, "rank %d: %s: byte %d of %d is wrong\n",
				rank, what, i, length);
			bad++;
			return;
		}
	}
}

static uint32_t seed_of(const struct worker *w, int from, int to)
{
	return mixed(w->step * 64 + w->id, from, to);
}

static int next(void)
{
	return (rank + 1) % size;
}

static int previous(void)
{
	return (rank + size - 1) % size;
}

/* A token goes round, so that all but one rank wait in MPI_Recv. */
static void pass_token(struct worker *w)
{
	int length = length_of(w, 1), first = w->step % size;
	uint32_t seed = seed_of(w, 0, 0);

	if (rank == first) {
		fill(w->out[0], length, seed);
		MPI_Send(w->out[0], length, MPI_BYTE, next(), 1, w->comm);
	}
	MPI_Recv(w->in[0], length, MPI_BYTE, previous(), 1, w->comm, MPI_STATUS_IGNORE);
	verify(w->in[0], length, seed, "token");
	if (rank != first)
		MPI_Send(w->in[0], length, MPI_BYTE, next(), 1, w->comm);
}

/* All to all, received late: unexpected messages and announced ones. */
static void all_to_all(struct worker *w)
{
	MPI_Request requests[2 * RANKS];
	int length = length_of(w, 2), count = 0;

	for (int i = 0; i < size; i++) {
		if (i == rank)
			continue;
		fill(w->out[i], length, seed_of(w, rank, i));
		MPI_Isend(w->out[i], length, MPI_BYTE, i, 2, w->comm, &requests[count++]);
	}
	if (w->step % 7 == 0)
		for (double until = MPI_Wtime() + 0.01; MPI_Wtime() < until;)
			;
	for (int i = 0; i < size; i++) {
		if (i == rank)
			continue;
		memset(w->in[i], 0, length);
		MPI_Irecv(w->in[i], length, MPI_BYTE, i, 2, w->comm, &requests[count++]);
	}
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++)
		if (i != rank)
			verify(w->in[i], length, seed_of(w, i, rank), "all to all");
}

/* From whoever comes, found by a matched probe; each sends another length. */
static void wildcards(struct worker *w)
{
	MPI_Request requests[RANKS];
	int count = 0;

	for (int i = 0; i < size; i++) {
		int length = length_of(w, 1000 + rank * 64 + i);

		if (i == rank)
			continue;
		fill(w->out[i], length, seed_of(w, rank, i));
		MPI_Isend(w->out[i], length, MPI_BYTE, i, 3, w->comm, &requests[count++]);
	}
	for (int i = 1; i < size; i++) {
		MPI_Message message;
		MPI_Status status;
		int length;

		MPI_Mprobe(MPI_ANY_SOURCE, 3, w->comm, &message, &status);
		MPI_Get_count(&status, MPI_BYTE, &length);
		if (length != length_of(w, 1000 + status.MPI_SOURCE * 64 + rank)) {
			fprintf(stderr, "rank %d: wildcard: wrong length\n", rank);
			bad++;
		}
		MPI_Mrecv(w->in[0], length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		verify(w->in[0], length, seed_of(w, status.MPI_SOURCE, rank), "wildcard");
	}
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Every second byte of a buffer, so that it must be packed. */
static void scattered(struct worker *w)
{
	int length = length_of(w, 4) / 2;
	MPI_Datatype type;

	MPI_Type_vector(length, 1, 2, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	fill(w->out[0], 2 * length, seed_of(w, rank, 0));
	memset(w->in[0], 0, 2 * length);
	MPI_Sendrecv(w->out[0], 1, type, next(), 4, w->in[0], 1, type, previous(), 4,
		     w->comm, MPI_STATUS_IGNORE);
	fill(w->out[0], 2 * length, seed_of(w, previous(), 0));
	for (int i = 0; i < length; i++) {
		if (w->in[0][2 * i] == w->out[0][2 * i])
			continue;
		fprintf(stderr, "rank %d: scattered: element %d of %d is wrong\n", rank, i, length);
		bad++;
		break;
	}
	MPI_Type_free(&type);
}

/* Many short messages in a row, by persistent requests. */
static void stream_of_short(struct worker *w)
{
	MPI_Request requests[2];
	uint64_t out, in;

	MPI_Send_init(&out, 8, MPI_BYTE, next(), 5, w->comm, &requests[0]);
	MPI_Recv_init(&in, 8, MPI_BYTE, previous(), 5, w->comm, &requests[1]);
	for (int i = 0; i < 100; i++) {
		out = seed_of(w, rank, i);
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		if (in != seed_of(w, previous(), i)) {
			fprintf(stderr, "rank %d: short message %d is wrong\n", rank, i);
			bad++;
		}
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
}

static void collectives(struct worker *w)
{
	int length = length_of(w, 6), root = w->step % size, done = 0;
	double mine = rank + w->step, sum;
	MPI_Request request;

	if (rank == root)
		fill(w->out[0], length, seed_of(w, root, 0));
	else
		memset(w->out[0], 0, length);
	MPI_Bcast(w->out[0], length, MPI_BYTE, root, w->comm);
	verify(w->out[0], length, seed_of(w, root, 0), "broadcast");

	MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, w->comm, &request);
	while (!done)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	if (sum != size * (size - 1) / 2.0 + (double)size * w->step) {
		fprintf(stderr, "rank %d: sum is wrong\n", rank);
		bad++;
	}
	if (w->step % 11 == 0 && rank == root)
		usleep(15000);
	MPI_Barrier(w->comm);
}

static void make_windows(void)
{
	MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &written, &bytes);
	MPI_Win_allocate(sizeof(*count), sizeof(*count), MPI_INFO_NULL, MPI_COMM_WORLD, &count,
			 &counter);
	*count = 0;
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The next rank is written to, between fences, under a lock, or as it has posted. */
static void put(const unsigned char *data, int length, int how)
{
	MPI_Group all, to, from;

	switch (how) {
	case 0:
		MPI_Win_fence(MPI_MODE_NOPRECEDE, bytes);
		MPI_Put(data, length, MPI_BYTE, next(), 0, length, MPI_BYTE, bytes);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, bytes);
		break;
	case 1:
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, bytes);
		MPI_Put(data, length, MPI_BYTE, next(), 0, length, MPI_BYTE, bytes);
		MPI_Win_unlock(next(), bytes);
		break;
	case 2:
		MPI_Comm_group(MPI_COMM_WORLD, &all);
		MPI_Group_incl(all, 1, (int[]){ previous() }, &from);
		MPI_Group_incl(all, 1, (int[]){ next() }, &to);
		MPI_Win_post(from, 0, bytes);
		MPI_Win_start(to, 0, bytes);
		MPI_Put(data, length, MPI_BYTE, next(), 0, length, MPI_BYTE, bytes);
		MPI_Win_complete(bytes);
		MPI_Win_wait(bytes);
		MPI_Group_free(&to);
		MPI_Group_free(&from);
		MPI_Group_free(&all);
		break;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* What was written is there and can be read back; all add to the count of one rank. */
static void one_sided(struct worker *w)
{
	int length = length_of(w, 7), root = w->step % size;
	uint64_t one = 1, before = 0, now = 0;

	fill(w->out[0], length, seed_of(w, rank, next()));
	put(w->out[0], length, w->step % 3);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, bytes);
	verify(written, length, seed_of(w, previous(), rank), "put");
	MPI_Win_unlock(rank, bytes);
	memset(w->in[0], 0, length);
	MPI_Win_lock_all(0, bytes);
	MPI_Get(w->in[0], length, MPI_BYTE, next(), 0, length, MPI_BYTE, bytes);
	MPI_Win_flush_all(bytes);
	MPI_Win_unlock_all(bytes);
	verify(w->in[0], length, seed_of(w, rank, next()), "get");

	MPI_Win_lock(MPI_LOCK_SHARED, root, 0, counter);
	MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, root, 0, MPI_SUM, counter);
	MPI_Win_unlock(root, counter);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, root, 0, counter);
	MPI_Get(&now, 1, MPI_UINT64_T, root, 0, 1, MPI_UINT64_T, counter);
	MPI_Win_unlock(root, counter);
	if (before >= now || now != (uint64_t)size * ((w->step - root) / size + (root > 0))) {
		fprintf(stderr, "rank %d: the count is wrong\n", rank);
		bad++;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	double start = MPI_Wtime();
	int go = 1;

	for (w->step = 1; go; w->step++) {
		pass_token(w);
		all_to_all(w);
		wildcards(w);
		scattered(w);
		stream_of_short(w);
		collectives(w);
		if (windows)
			one_sided(w);
		steps++;
		go = file ? access(file, F_OK) != 0 : MPI_Wtime() - start < seconds ||
		    (driven && driver_rounds() < MIN_ROUNDS);
		MPI_Bcast(&go, 1, MPI_INT, 0, w->comm);
	}
	return NULL;
}

static void make_worker(struct worker *w, int id)
{
	w->id = id;
	MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
	for (int i = 0; i < size; i++) {
		w->out[i] = malloc(LONGEST);
		w->in[i] = malloc(LONGEST);
		if (!w->out[i] || !w->in[i])
			MPI_Abort(MPI_COMM_WORLD, 98);
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1, provided;
	struct driver_result result = { 0 };
	unsigned long wrong = 0, mine;
	struct worker *workers;

	seconds = argc > 1 ? atof(argv[1]) : 5;
	file = argc > 1 && strchr(argv[1], '/') ? argv[1] : NULL;
	MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	windows = threads == 1 && getenv("OMPI_MCA_osc");
	if (windows)
		make_windows();
	workers = calloc(threads, sizeof(*workers));
	driven = driver_start(rank, size);
	for (int i = 0; i < threads; i++)
		make_worker(&workers[i], i);
	for (int i = 1; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	work(&workers[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(workers[i].thread, NULL);

	mine = bad;
	MPI_Allreduce(&mine, &wrong, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (windows) {
		MPI_Win_free(&bytes);
		MPI_Win_free(&counter);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (driven)
		driver_stop(&result);
	if (!rank) {
		unsigned int all = driver_rounds();

		printf("torture: %d ranks, %d threads, %lu steps, %lu wrong; %u continued, "
		       "%u restarted, %u moved, %u given up, %.1f MB drained, "
		       "%.2f ms on average, %.2f at worst\n", size, threads,
		       (unsigned long)steps, wrong, result.continued, result.restarted,
		       result.moved, result.given_up, result.drained / 1e6,
		       all ? result.total_ms / all : 0, result.worst_ms);
		if (driven && all < MIN_ROUNDS) {
			fprintf(stderr, "torture: the driver hardly came round\n");
			wrong++;
		}
	}
	MPI_Finalize();
	return wrong != 0;
}
