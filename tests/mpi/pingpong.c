// SPDX-License-Identifier: GPL-2.0
/*
 * pingpong: one-way times between ranks 0 and 1, a line `BYTES MICROSECONDS` for
 * each length: the best of BLOCKS blocks, which leaves other programs out.
 * pingpong idle: what one MPI_Test of a request that does not complete costs
 * rank 0, in ns, after it has talked to all others, which then sleep.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 40
#define PATIENCE 0.5	/* seconds for a length: a busy machine gets fewer blocks */
#define LONGEST (4 << 20)

static const int lengths[] = {
	1, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, LONGEST,
};

static double least(const double *values, int count)
{
	double low = values[0];

	while (--count)
		if (values[count] < low)
			low = values[count];
	return low;
}

static void exchange(int rank, char *data, int length, int times)
{
	for (int i = 0; i < times; i++) {
		if (rank == 0) {
			MPI_Send(data, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(data, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(data, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(data, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
}

static void ping_pong(int rank, MPI_Comm pair)
{
	char *data = aligned_alloc(2 << 20, LONGEST);
	double blocks[BLOCKS];

	if (!data)
		MPI_Abort(MPI_COMM_WORLD, 98);
	madvise(data, LONGEST, MADV_HUGEPAGE);	/* for all alike */
	memset(data, 1, LONGEST);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		int length = lengths[i];
		int times = length <= 4096 ? 500 : length <= 65536 ? 100 : length <= 1 << 20 ? 20 : 4;
		double begin = MPI_Wtime();
		int block = 0, go = 1;

		exchange(rank, data, length, times);
		while (go) {
			double start = MPI_Wtime();

			exchange(rank, data, length, times);
			blocks[block++] = (MPI_Wtime() - start) / times / 2;
			go = block < BLOCKS && MPI_Wtime() - begin < PATIENCE;
			MPI_Bcast(&go, 1, MPI_INT, 0, pair);
		}
		if (!rank)
			printf("%d %.3f\n", length, least(blocks, block) * 1e6);
	}
	free(data);
}

/* Many ranks share few processors here: those that wait must not spin. */
static void receive_napping(int tag)
{
	MPI_Request request;
	int word, done = 0;

	MPI_Irecv(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
	for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
	     MPI_Test(&request, &done, MPI_STATUS_IGNORE))
		usleep(2000);
}

static void echo_napping(void)
{
	int word = 0;

	receive_napping(0);
	MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

static void visit_all(int size)
{
	int word = 0;

	for (int peer = 1; peer < size; peer++)
		MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
	for (int peer = 1; peer < size; peer++)
		MPI_Recv(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void idle(int rank, int size)
{
	const int times = 50000;
	double blocks[BLOCKS];
	MPI_Request request;
	int word = 0, done = 0;

	/* often enough for a transport that sets up its fast path late */
	for (int i = 0; i < 40; i++)
		rank ? echo_napping() : visit_all(size);
	if (rank) {
		receive_napping(1);
		return;
	}
	usleep(300000);
	MPI_Irecv(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request);
	for (int block = -1; block < BLOCKS; block++) {
		double start = MPI_Wtime();

		for (int i = 0; i < times; i++)
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (block >= 0)
			blocks[block] = (MPI_Wtime() - start) / times;
	}
	printf("idle %.2f\n", least(blocks, BLOCKS) * 1e9);
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int peer = 1; peer < size; peer++)
		MPI_Send(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Comm pair;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank < 2, 0, &pair);
	if (argc > 1 && !strcmp(argv[1], "idle"))
		idle(rank, size);
	else if (rank < 2 && size > 1)
		ping_pong(rank, pair);
	MPI_Comm_free(&pair);
	MPI_Finalize();
	return 0;
}
