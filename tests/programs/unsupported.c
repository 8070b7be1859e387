// SPDX-License-Identifier: GPL-2.0
/*
 * Has a descriptor of a kind that cannot be saved (a packet socket, number 20).  The
 * argument `skipped` says that the checkpoint went on without it: then it is closed.
 */
#include <sys/socket.h>

#include "check.h"

int main(int argc, char **argv)
{
	int fd;

	check_begin(argc, argv);
	fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	NEED(fd >= 0 && dup2(fd, 20) == 20 && !close(fd));
	check_ready();
	check_wait();
	if (argc > 3)
		CHECK(fcntl(20, F_GETFD) < 0 && errno == EBADF);
	else
		CHECK(fcntl(20, F_GETFD) == 0);
	return check_end();
}
