// SPDX-License-Identifier: GPL-2.0
/*
 * features ROUNDS [pause] [threads]: uses everything that MPI has (features.h), for so many
 * rounds.  With `pause` the ranks wait in the middle of round N, with all that is pending, until
 * there is a file go.N, one half of them in MPI, the other one outside; without it only for a
 * moment.  For each feature and round rank 0 prints "result ROUND FEATURE ok", or "wrong".  With a
 * driver (driver.h) checkpoints go on underneath.
 */
#include "features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define MOST 100	/* features */

int rank, size;
bool threads;

static const struct feature *features[MOST];
static int feature_count, wrong[MOST], current;
static MPI_Comm control;

void check(bool right, const char *what, const char *file, int line)
{
	if (right)
		return;
	fprintf(stderr, "rank %d: %s:%d: %s: not so: %s\n", rank, file, line,
		features[current]->name, what);
	wrong[current]++;
}

int next(void)
{
	return (rank + 1) % size;
}

int previous(void)
{
	return (rank + size - 1) % size;
}

int late(int round)
{
	return round % size;
}

static int number(int i, int seed)
{
	return (unsigned int)seed * 2654435761u + (unsigned int)i * 2246822519u;
}

void fill(int *data, int count, int seed)
{
	for (int i = 0; i < count; i++)
		data[i] = number(i, seed);
}

bool filled(const int *data, int count, int seed)
{
	for (int i = 0; i < count; i++)
		if (data[i] != number(i, seed))
			return false;
	return true;
}

static void add(const struct feature *list)
{
	for (; list->name && feature_count < MOST; list++)
		features[feature_count++] = list;
}

static void list_features(void)
{
	add(point_features);
	add(collective_features);
	add(communicator_features);
	add(topology_features);
	add(object_features);
	add(type_features);
	/* 4.1 has no windows for several threads; that it says so is in the case mpi/err_request. */
	if (!threads || OMPI_MAJOR_VERSION > 4)
		add(window_features);
	add(file_features);
	if (threads)
		add(thread_features);
}

/* Ranks of one half ask MPI for progress meanwhile. */
static void wait_for(const char *file)
{
	int flag;

	while (access(file, F_OK)) {
		if (rank % 2)
			usleep(10000);
		else
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &flag, MPI_STATUS_IGNORE);
	}
}

static void pause_in(int round, bool wait)
{
	char name[32];

	MPI_Barrier(control);
	if (!wait) {
		usleep(20000);
		return;
	}
	if (!rank) {
		printf("paused %d\n", round);
		fflush(stdout);
	}
	snprintf(name, sizeof(name), "go.%d", round);
	wait_for(name);
}

static void run(int round, bool wait)
{
	for (current = 0; current < feature_count; current++)
		if (features[current]->begin)
			features[current]->begin(round);
	pause_in(round, wait);
	for (current = 0; current < feature_count; current++)
		features[current]->end(round);
}

static int report(int round)
{
	int sum[MOST] = { 0 }, all = 0;

	MPI_Reduce(wrong, sum, feature_count, MPI_INT, MPI_SUM, 0, control);
	for (int i = 0; i < feature_count && !rank; i++) {
		printf("result %d %s %s\n", round, features[i]->name, sum[i] ? "wrong" : "ok");
		all += sum[i];
	}
	fflush(stdout);
	memset(wrong, 0, sizeof(wrong));
	return all;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, all = 0, level;
	struct driver_result result = { 0 };
	bool wait = false, driven;

	for (int i = 2; i < argc; i++) {
		wait |= !strcmp(argv[i], "pause");
		threads |= !strcmp(argv[i], "threads");
	}
	MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_dup(MPI_COMM_WORLD, &control);
	list_features();
	driven = driver_start(rank, size);
	for (current = 0; current < feature_count; current++)
		if (features[current]->open)
			features[current]->open();
	for (int round = 1; round <= rounds; round++) {
		run(round, wait);
		all += report(round);
	}
	for (current = 0; current < feature_count; current++)
		if (features[current]->close)
			features[current]->close();
	MPI_Barrier(control);
	if (driven)
		driver_stop(&result);
	MPI_Comm_free(&control);
	if (!rank)
		printf("features: %d rounds of %d, %d wrong; %u of the driver\n", rounds, feature_count,
		       all, result.continued + result.restarted + result.moved);
	MPI_Finalize();
	return all != 0;
}
