/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What MPI can do, one feature beside the other.  In each round all features begin what is to be
 * pending when the job is saved, then they pause (features.c), then all end it, and check it.
 */
#ifndef TESTS_MPI_FEATURES_H
#define TESTS_MPI_FEATURES_H

#include <mpi.h>
#include <stdbool.h>

struct feature {
	const char *name;
	void (*begin)(int round);
	void (*end)(int round);
	void (*open)(void);	/* before the first round and after the last, if there is something */
	void (*close)(void);
};

/* Each ends with one that has no name. */
extern const struct feature point_features[], collective_features[], communicator_features[],
	topology_features[], object_features[], type_features[], window_features[], file_features[],
	thread_features[];

extern int rank, size;
extern bool threads;		/* MPI_THREAD_MULTIPLE is asked for */

#define CHECK(right) check(right, #right, __FILE__, __LINE__)
void check(bool right, const char *what, const char *file, int line);

int next(void);
int previous(void);
int late(int round);		/* the rank that takes part only after the pause */

/* count numbers that SEED says. */
void fill(int *data, int count, int seed);
bool filled(const int *data, int count, int seed);

#endif
