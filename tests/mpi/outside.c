// SPDX-License-Identifier: GPL-2.0
/*
 * outside FILE ROUNDS: rank 0 begins to send and then waits outside of MPI, by a
 * counter in FILE, for rank 1 to have received: what fits into a socket may not wait
 * for the sender's next call.  With a driver (driver.h) checkpoints and restarts go
 * on underneath.
 */
#include <mpi.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

static atomic_int *map_counter(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *at = fd < 0 || ftruncate(fd, sizeof(atomic_int)) ? MAP_FAILED :
		   mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	return at;
}

int main(int argc, char **argv)
{
	int rank, size, driven, rounds = argc > 2 ? atoi(argv[2]) : 0;
	struct driver_result result = { 0 };
	atomic_int *received;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || !rounds)
		MPI_Abort(MPI_COMM_WORLD, 2);
	received = map_counter(argv[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	driven = driver_start(rank, size);
	for (int round = 1; round <= rounds; round++) {
		MPI_Request request;
		int got = round;

		if (rank) {
			MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			atomic_store(received, got);
			continue;
		}
		MPI_Isend(&got, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
		while (atomic_load(received) < round)
			usleep(100);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (driven)
		driver_stop(&result);
	if (!rank)
		printf("outside: %d rounds, 0 wrong; %u restarted\n", rounds, result.restarted);
	MPI_Finalize();
	return 0;
}
