// SPDX-License-Identifier: GPL-2.0
/*
 * job STEPS: a computation whose result depends on every message of every step:
 * neighbours exchange blocks of changing size, all reduce, one broadcasts, and
 * each rank folds what it got into a sum.  Rank 0 prints the result.  Pauses
 * keep it from ending before it is checkpointed.
 *   -f         rank 1 aborts the job with status 42 at the end
 *   -x N       rank 1 ends with status N after MPI_Finalize
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_WORDS	(1 << 17)

static uint64_t out[MAX_WORDS], in[MAX_WORDS];

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x * 0x9e3779b97f4a7c15ull + 1;
}

static uint64_t exchange(int rank, int size, int step, uint64_t state)
{
	int words = 1 + mix(step) % (step % 8 ? 512 : MAX_WORDS);
	int to = (rank + 1 + step % size) % size, from = (rank + 2 * size - 1 - step % size) % size;

	for (int i = 0; i < words; i++)
		out[i] = state = mix(state + i);
	MPI_Sendrecv(out, words, MPI_UINT64_T, to, step, in, words, MPI_UINT64_T, from, step,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < words; i++)
		state = mix(state ^ in[i]);
	return state;
}

int main(int argc, char **argv)
{
	int steps, rank, size, option, status = 0, abort_at_end = 0;
	uint64_t state, all;

	MPI_Init(&argc, &argv);
	while ((option = getopt(argc, argv, "fx:")) != -1) {
		if (option == 'f')
			abort_at_end = 1;
		else
			status = atoi(optarg);
	}
	steps = optind < argc ? atoi(argv[optind]) : 100;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	state = mix(rank + 1);
	for (int step = 0; step < steps; step++) {
		state = exchange(rank, size, step, state);
		MPI_Allreduce(&state, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
		state += all;
		all = mix(state);
		MPI_Bcast(&all, 1, MPI_UINT64_T, step % size, MPI_COMM_WORLD);
		state ^= all;
		if (step == 0 && rank == 0) {
			fprintf(stderr, "running\n");
		}
		usleep(10000);
	}
	MPI_Reduce(&state, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("result %016llx\n", (unsigned long long)all);
	if (abort_at_end && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 42);
	MPI_Finalize();
	return rank == 1 ? status : 0;
}
