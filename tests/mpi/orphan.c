// SPDX-License-Identifier: GPL-2.0
/*
 * orphan FILE: a rank whose launcher is killed, by rank 0, goes on as a restored one
 * without a PMIx server does: it communicates, makes communicators and ends by
 * MPI_Finalize.  Writes "done" to FILE.RANK, or what failed, there by Open MPI, too.
 * With the parts of hook/cr that are for this.
 */
#include "ompi_config.h"

#include "ompi/runtime/params.h"

#include <mpi.h>
#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpi-plugin/hook/rank.h"

static FILE *out;
static int rank, size;

static int check(const char *what, int right)
{
	if (!right)
		fprintf(out, "%s\n", what);
	return !right;
}

static int sum_is_right(MPI_Comm comm)
{
	int mine = rank + 1, sum = 0;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	return sum == size * (size + 1) / 2;
}

/* PMIx tells of the loss after a second. */
static int loss_is_told(void)
{
	for (int waited = 0; !ompi_async_mpi_finalize && waited < 30000; waited++)
		usleep(1000);
	return ompi_async_mpi_finalize;
}

static int work(void)
{
	int bad = check("messages", sum_is_right(MPI_COMM_WORLD));
	MPI_Comm copy, node;

	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	bad += check("a copy of the communicator", sum_is_right(copy));
	MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	bad += check("the communicator of a node", sum_is_right(node));
	MPI_Comm_free(&node);
	MPI_Comm_free(&copy);
	return bad;
}

int main(int argc, char **argv)
{
	static char *nothing[] = { NULL };
	const struct launcher without = { .environment = nothing };
	char name[4096];
	int bad;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(name, sizeof(name), "%s.%d", argc > 1 ? argv[1] : "orphan", rank);
	out = freopen(name, "w", stderr);	/* nobody reads that of mpirun */
	if (!out || check("to watch the server", !runtime_watch()))
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		kill(getppid(), SIGKILL);
	bad = check("its handler is not called", loss_is_told());
	bad += check("to go on without a server", !runtime_reattach(&without));
	bad += check("the server is still there", PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS);
	bad += work();
	MPI_Finalize();
	if (!bad)
		fprintf(out, "done\n");
	return fclose(out) || bad;
}
