// SPDX-License-Identifier: GPL-2.0
/*
 * session: a sum over a communicator that comes from a session, then one over
 * MPI_COMM_WORLD, which begins later.  Prints "done" in rank 0.
 * session again: the session ends before that, and MPI with it.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>

static int sum_is_right(MPI_Comm comm)
{
	int rank, size, sum = 0;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	rank++;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	return sum == size * (size + 1) / 2;
}

int main(int argc, char **argv)
{
	const bool again = argc > 1;
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;
	int rank, right;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
	MPI_Comm_create_from_group(group, "kcr", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
	MPI_Group_free(&group);
	right = sum_is_right(comm);
	MPI_Comm_free(&comm);
	if (again)
		MPI_Session_finalize(&session);

	MPI_Init(&argc, &argv);
	right = sum_is_right(MPI_COMM_WORLD) && right;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		puts(right ? "done" : "wrong");
	MPI_Finalize();
	if (!again)
		MPI_Session_finalize(&session);
	return !right;
}
