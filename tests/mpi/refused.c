// SPDX-License-Identifier: GPL-2.0
/*
 * refused CALL: tries what a job that can be checkpointed may not do; the default
 * error handler then ends the job.  Prints "done" if it was allowed.
 *   spawn     MPI_Comm_spawn
 *   shared    MPI_Win_allocate_shared
 *   publish   MPI_Publish_name
 *   accept    MPI_Comm_accept
 *   threads   a window, after asking for MPI_THREAD_MULTIPLE
 * and what it may, one-sided communication:
 *   window    MPI_Win_allocate, MPI_Put, MPI_Win_fence
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void use_window(int rank, int size)
{
	int *base, mine = 100 + rank;
	MPI_Win win;

	MPI_Win_allocate(sizeof(*base), sizeof(*base), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	if (*base != 100 + (rank + size - 1) % size)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Win_free(&win);
}

static void make_shared(void)
{
	MPI_Win win;
	void *base;

	MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME] = "";
	const char *call = argc > 1 ? argv[1] : "";
	MPI_Comm other;
	int rank, size, provided;

	MPI_Init_thread(&argc, &argv, !strcmp(call, "threads") ? MPI_THREAD_MULTIPLE :
			MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(call, "spawn")) {
		MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
			       MPI_ERRCODES_IGNORE);
	} else if (!strcmp(call, "shared")) {
		make_shared();
	} else if (!strcmp(call, "publish")) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Publish_name("kcr", MPI_INFO_NULL, port);
	} else if (!strcmp(call, "accept")) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
	} else if (!strcmp(call, "window") || !strcmp(call, "threads")) {
		use_window(rank, size);
	}
	if (rank == 0)
		printf("done\n");
	MPI_Finalize();
	return 0;
}
