// SPDX-License-Identifier: GPL-2.0
/*
 * rarely: of three ranks 0 is on a node of its own.  0 and 1 send to each other for the first time,
 * at once, and have their first connections refused; then 1 looks into MPI ten times a second only.
 * Fails if the messages have not arrived within TRIES looks.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_US 100000
#define TRIES 50

static int refused;		/* so many connections are, from now on */

/* Also for the libraries. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	if (refused > 0) {
		refused--;
		errno = ECONNREFUSED;
		return -1;
	}
	return syscall(SYS_connect, fd, address.__sockaddr__, length);
}

/* Between ranks on one node: looking into MPI is about them first. */
static void use_memory(int rank)
{
	int mine = rank, other;

	MPI_Sendrecv(&mine, 1, MPI_INT, 3 - rank, 1, &other, 1, MPI_INT, 3 - rank, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int meet(int rank)
{
	MPI_Request request[2];
	int mine = rank, other = -1, done = 0, looks = 0;

	MPI_Irecv(&other, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(&mine, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &request[1]);
	while (rank && looks++ < TRIES && !done) {
		usleep(PAUSE_US);
		MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
	}
	if (rank && !done) {
		fprintf(stderr, "rarely: not connected after %d looks\n", TRIES);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	if (rank)
		printf("rarely: %d wrong; connected after %d looks\n", other != 1 - rank, looks - 1);
	return other != 1 - rank;
}

int main(int argc, char **argv)
{
	int rank, wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank)
		use_memory(rank);
	else
		usleep(PAUSE_US / 3);
	refused = 1;
	if (rank < 2)
		wrong = meet(rank);
	MPI_Finalize();
	return wrong;
}
