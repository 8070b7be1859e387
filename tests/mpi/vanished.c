// SPDX-License-Identifier: GPL-2.0
/*
 * vanished: rank 0 sends to rank 1, and who takes its first connection vanishes before it has said
 * anything, as if its network had failed for a while: without a word, and what comes next is refused.
 * vanished reset: the network resets the connection when rank 1 waits for more.
 * vanished write: that is noticed by rank 1 when it sends.
 */
#include <errno.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE 20	/* seconds */

static bool vanishes, may;
static int last = -1;	/* connection */

static int connect_to(int fd, const void *address, socklen_t length)
{
	return syscall(SYS_connect, fd, address, length);
}

/* A closed socket that was being repaired sends nothing. */
static bool drop(int fd)
{
	int on = 1;
	bool done = fd >= 0 && !setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on));

	close(fd);
	return done;
}

static int connect_to_nobody(int fd)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int port = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(port, (void *)&address, length) || listen(port, 1) ||
	    getsockname(port, (void *)&address, &length))
		return -1;
	connect_to(fd, &address, length);
	may = drop(accept(port, NULL, NULL));
	close(port);
	errno = EINPROGRESS;
	return -1;
}

/* Also for the libraries. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	last = fd;
	if (!vanishes)
		return connect_to(fd, address.__sockaddr__, length);
	vanishes = false;
	return connect_to_nobody(fd);
}

static void reset(int rank, bool writes)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	int value = 0;

	if (rank) {
		MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(writes * 500000);
		if (writes)
			MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
		if (connect_to(last, &nobody, sizeof(nobody)))
			perror("vanished: connect");
		sleep(PATIENCE);
	}
	puts("vanished: nobody has noticed");
	_exit(1);
}

int main(int argc, char **argv)
{
	int rank, value = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1)
		reset(rank, !strcmp(argv[1], "write"));
	if (rank) {
		MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("vanished: %d wrong; connected\n", value != 42);
	} else {
		vanishes = true;
		value = 42;
		MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
		if (!may)
			puts("vanished: no right to make a socket vanish");
	}
	MPI_Finalize();
	return 0;
}
