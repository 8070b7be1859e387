// SPDX-License-Identifier: GPL-2.0
/*
 * swaps ROUNDS: all ranks but 0 send it eight requests of MPI_Compare_and_swap() in each round, for
 * words of their own, and wait for the answers.  With a driver (driver.h) checkpoints go on
 * underneath: an answer may have to wait while more requests come.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

#define WORDS 8		/* of each rank */

/* Returns how many answers were wrong. */
static long swap_all(long rounds, MPI_Aint first, MPI_Win window)
{
	long wrong = 0;

	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	for (long round = 0; round < rounds; round++) {
		long next = round + 1, seen[WORDS];

		for (int i = 0; i < WORDS; i++)
			MPI_Compare_and_swap(&next, &round, &seen[i], MPI_LONG, 0, first + i, window);
		MPI_Win_flush(0, window);
		for (int i = 0; i < WORDS; i++)
			wrong += seen[i] != round;
	}
	MPI_Win_unlock(0, window);
	return wrong;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100, *memory, wrong = 0, all;
	struct driver_result result = { 0 };
	int rank, size, driven;
	MPI_Win window;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	driven = driver_start(rank, size);
	MPI_Win_allocate(size * WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &memory, &window);
	for (int i = 0; i < size * WORDS; i++)
		memory[i] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		wrong = swap_all(rounds, (MPI_Aint)rank * WORDS, window);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = WORDS; !rank && i < size * WORDS; i++)
		wrong += memory[i] != rounds;
	MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (driven)
		driver_stop(&result);
	if (rank == 0)
		printf("swaps: %ld rounds of %d ranks, %ld wrong; %u of the driver\n", rounds, size - 1, all,
		       result.continued + result.restarted);
	MPI_Win_free(&window);
	MPI_Finalize();
	return rank == 0 && all != 0;
}
