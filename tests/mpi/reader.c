// SPDX-License-Identifier: GPL-2.0
/*
 * reader: rank 0 reads lines until the end of its standard input and gives them to
 * all; every rank counts their bytes.  Rank 0 echoes each line, to standard output
 * and to standard error in turn, and prints the total of all ranks at the end.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank, size, length, lines = 0;
	long mine = 0, total;
	char line[256];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		fprintf(stderr, "running\n");
	for (;;) {
		length = rank == 0 && fgets(line, sizeof(line), stdin) ? (int)strlen(line) : 0;
		MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (!length)
			break;
		MPI_Bcast(line, length + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
		mine += strlen(line);
		if (rank == 0) {
			fprintf(lines++ % 2 ? stderr : stdout, "got %s", line);
			fflush(stdout);
		}
	}
	MPI_Reduce(&mine, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("result %d %ld\n", lines, total / size);
	MPI_Finalize();
	return 0;
}
