// SPDX-License-Identifier: GPL-2.0
/*
 * job [OPTION...] STEPS: a computation whose result depends on every message of every step:
 * neighbours exchange blocks of changing size, all reduce, one broadcasts, and
 * each rank folds what it got into a sum.  Rank 0 prints the result.  Pauses
 * keep it from ending before it is checkpointed.
 *   -w FILE    rank 0 waits in the middle until there is FILE
 *   -f         rank 1 aborts the job with status 42 at the end
 *   -x N       rank 1 ends with status N after MPI_Finalize
 *   -s NP      one process computes what NP ranks would, without MPI
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_WORDS	(1 << 17)
#define MAX_ALONE	8

static uint64_t out[MAX_WORDS], in[MAX_WORDS];
static uint64_t alone_out[MAX_ALONE][MAX_WORDS];

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x * 0x9e3779b97f4a7c15ull + 1;
}

static int words_of(int step)
{
	return 1 + mix(step) % (step % 8 ? 512 : MAX_WORDS);
}

static int from_of(int rank, int size, int step)
{
	return (rank + 2 * size - 1 - step % size) % size;
}

static uint64_t fill(uint64_t *block, int words, uint64_t state)
{
	for (int i = 0; i < words; i++)
		block[i] = state = mix(state + i);
	return state;
}

static uint64_t fold(const uint64_t *block, int words, uint64_t state)
{
	for (int i = 0; i < words; i++)
		state = mix(state ^ block[i]);
	return state;
}

static uint64_t exchange(int rank, int size, int step, uint64_t state)
{
	int words = words_of(step), to = (rank + 1 + step % size) % size;

	state = fill(out, words, state);
	MPI_Sendrecv(out, words, MPI_UINT64_T, to, step, in, words, MPI_UINT64_T,
		     from_of(rank, size, step), step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return fold(in, words, state);
}

/* The result of all steps of all ranks. */
static uint64_t alone(int size, int steps)
{
	uint64_t state[MAX_ALONE], all, sum = 0;

	for (int rank = 0; rank < size; rank++)
		state[rank] = mix(rank + 1);
	for (int step = 0; step < steps; step++) {
		int words = words_of(step);

		for (int rank = 0; rank < size; rank++)
			state[rank] = fill(alone_out[rank], words, state[rank]);
		all = 0;
		for (int rank = 0; rank < size; rank++) {
			state[rank] = fold(alone_out[from_of(rank, size, step)], words, state[rank]);
			all ^= state[rank];
		}
		for (int rank = 0; rank < size; rank++)
			state[rank] += all;
		all = mix(state[step % size]);
		for (int rank = 0; rank < size; rank++)
			state[rank] ^= all;
	}
	for (int rank = 0; rank < size; rank++)
		sum += state[rank];
	return sum;
}

static void print_result(uint64_t result)
{
	printf("result %016llx\n", (unsigned long long)result);
}

int main(int argc, char **argv)
{
	int steps, rank, size, option, status = 0, abort_at_end = 0, np_alone = 0;
	const char *wanted = NULL;
	uint64_t state, all;

	while ((option = getopt(argc, argv, "fs:w:x:")) != -1) {
		if (option == 'f')
			abort_at_end = 1;
		else if (option == 's')
			np_alone = atoi(optarg);
		else if (option == 'w')
			wanted = optarg;
		else
			status = atoi(optarg);
	}
	steps = optind < argc ? atoi(argv[optind]) : 100;
	if (np_alone > 0 && np_alone <= MAX_ALONE) {
		print_result(alone(np_alone, steps));
		return 0;
	}
	MPI_Init(&argc, &argv);
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
		do
			usleep(10000);
		while (rank == 0 && step == steps / 2 && wanted && access(wanted, F_OK));
	}
	MPI_Reduce(&state, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		print_result(all);
	if (abort_at_end && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 42);
	MPI_Finalize();
	return rank == 1 ? status : 0;
}
