// SPDX-License-Identifier: GPL-2.0
/*
 * refused CALL [return]: tries what a job that can be checkpointed may not do; the default
 * error handler then ends the job.  With `return` errors are returned, and all ranks must
 * get one.  Prints "done" if it was allowed, "refused" if all ranks have returned an error.
 *   spawn     MPI_Comm_spawn
 *   shared    MPI_Win_allocate_shared
 *   multiple  MPI_Comm_spawn_multiple
 *   publish   MPI_Publish_name
 *   accept    MPI_Comm_accept
 *   connect   MPI_Comm_connect
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

static int make_shared(void)
{
	MPI_Win win;
	void *base;
	int err = MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);

	return err ? err : MPI_Win_free(&win);
}

static int spawn_multiple(MPI_Comm *other)
{
	char *command[] = { "true", "true" };
	MPI_Info info[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	int processes[] = { 1, 1 };

	return MPI_Comm_spawn_multiple(2, command, MPI_ARGVS_NULL, processes, info, 0,
				       MPI_COMM_WORLD, other, MPI_ERRCODES_IGNORE);
}

/* 0 or an MPI error. */
static int make_call(const char *call)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm other;

	if (!strcmp(call, "spawn"))
		return MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
				      &other, MPI_ERRCODES_IGNORE);
	if (!strcmp(call, "multiple"))
		return spawn_multiple(&other);
	if (!strcmp(call, "shared"))
		return make_shared();
	MPI_Open_port(MPI_INFO_NULL, port);
	if (!strcmp(call, "publish"))
		return MPI_Publish_name("kcr", MPI_INFO_NULL, port);
	if (!strcmp(call, "accept"))
		return MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
	return MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
}

int main(int argc, char **argv)
{
	const char *call = argc > 1 ? argv[1] : "";
	int rank, size, provided, failed = 0, all;

	MPI_Init_thread(&argc, &argv, !strcmp(call, "threads") ? MPI_THREAD_MULTIPLE :
			MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 2)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (!strcmp(call, "window") || !strcmp(call, "threads"))
		use_window(rank, size);
	else
		failed = make_call(call) != MPI_SUCCESS;
	MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		puts(all == size ? "refused" : all ? "in disagreement" : "done");
	MPI_Finalize();
	return 0;
}
