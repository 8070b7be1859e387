// SPDX-License-Identifier: GPL-2.0
/*
 * pulse [-m MB] [-n US] [-p MS] LOG SECONDS: a message goes from rank to rank and round again, for so
 * long on this node's clock; where a round begins more than MS (50) after the one before has begun,
 * rank 0 adds a line to LOG, after its end: the time then, in ms since 1970, and the length of the
 * pause in ms.  The last line is `longest MS`.  Each rank has MB of memory that it writes to once, and
 * looks for its message every US (500).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TOLERABLE_MS 50

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* By its name each time: a restart has no file of an earlier length to go back to. */
static void tell(const char *path, const char *line)
{
	FILE *log = fopen(path, "a");

	if (!log || fputs(line, log) < 0 || fclose(log))
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static useconds_t nap_us = 500;

/* MPI_Recv() would spin: the processors are for those who save the job, too. */
static void receive(int *go, int from)
{
	MPI_Request request;
	int done = 0;

	MPI_Irecv(go, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
	while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
		usleep(nap_us);
}

static void round_trip(int *go, int rank, int size)
{
	if (rank) {
		receive(go, rank - 1);
		MPI_Send(go, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
	} else {
		MPI_Send(go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		receive(go, size - 1);
	}
}

int main(int argc, char **argv)
{
	double begin, before, now, longest = 0, tolerable = TOLERABLE_MS;
	int rank, size, option, go = 1;
	size_t bytes = 0;
	const char *log;
	char line[80];
	char *memory;

	while ((option = getopt(argc, argv, "m:n:p:")) != -1) {
		if (option == 'm')
			bytes = (size_t)atol(optarg) << 20;
		else if (option == 'n')
			nap_us = atol(optarg);
		else if (option == 'p')
			tolerable = atof(optarg);
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	memory = malloc(bytes + 1);
	if (argc - optind != 2 || size < 2 || !memory)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(memory, rank + 1, bytes);
	log = argv[optind];
	round_trip(&go, rank, size);		/* connects them */
	if (rank == 0)
		fprintf(stderr, "running\n");
	for (begin = before = now_ms(); go; before = now) {
		round_trip(&go, rank, size);
		if (rank)
			continue;
		now = now_ms();
		if (now - before > longest)
			longest = now - before;
		if (now - before > tolerable) {
			sprintf(line, "%.1f %.1f\n", now, now - before);
			tell(log, line);
		}
		go = now - begin < 1e3 * atof(argv[optind + 1]);
		if (!go)
			round_trip(&go, rank, size);
	}
	if (rank == 0) {
		sprintf(line, "longest %.1f\n", longest);
		tell(log, line);
	}
	free(memory);
	MPI_Finalize();
	return 0;
}
