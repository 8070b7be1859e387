// SPDX-License-Identifier: GPL-2.0
/*
 * asks NAME [all|one [FILE]]: computes, waits until there is FILE,
 * asks for a checkpoint of its job in the middle,
 * by all ranks or by the last one alone, and computes on.  Rank 0 prints what the
 * call returned in one of the ranks that asked, and the result.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpi-plugin/library/kcr_mpi.h"

static long compute(int rank, int steps, long state)
{
	for (int i = 0; i < steps; i++) {
		long mine = state * 31 + rank + i;

		MPI_Allreduce(&mine, &state, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	}
	return state;
}

/* The last rank leaves a file `asking` when it goes on. */
static void wait_for(const char *file, int rank, int size)
{
	FILE *asking;

	if (rank == 0)
		fprintf(stderr, "running\n");
	while (access(file, F_OK))
		usleep(1000);
	asking = rank == size - 1 ? fopen("asking", "w") : NULL;
	if (asking)
		fclose(asking);
}

int main(int argc, char **argv)
{
	int rank, size, all = argc < 3 || !strcmp(argv[2], "all"), answer[2] = { 0, 0 };
	long state;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	state = compute(rank, 100, 1);
	if (argc > 3)
		wait_for(argv[3], rank, size);
	if (all || rank == size - 1) {
		/* A collective call takes what rank 0 gives. */
		answer[0] = kcr_mpi_checkpoint(all && rank ? "ignored" : argv[1], 1,
					       all ? 0 : KCR_MPI_ALONE);
		answer[1] = errno;
	}
	MPI_Bcast(answer, 2, MPI_INT, size - 1, MPI_COMM_WORLD);
	state = compute(rank, 100, state);
	if (rank == 0) {
		if (answer[0] < 0)
			printf("refused: %s\n", strerror(answer[1]));
		else
			printf("%s\n", answer[0] ? "restarted" : "saved");
		printf("result %lx\n", state);
	}
	MPI_Finalize();
	return 0;
}
