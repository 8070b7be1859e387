// SPDX-License-Identifier: GPL-2.0
/*
 * Has a descriptor of a kind that cannot be saved (a packet socket, number 20).  The
 * argument `skipped` says that the checkpoint went on without it: then it is closed;
 * `io_uring`, that it is one of those instead.
 */
#include <linux/io_uring.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct io_uring_params ring = {};
	bool uring, skipped;
	int fd;

	check_begin(argc, argv);
	uring = argc > 3 && !strcmp(argv[3], "io_uring");
	skipped = argc > 3 && !uring;
	fd = uring ? (int)syscall(SYS_io_uring_setup, 4, &ring) : socket(AF_PACKET, SOCK_DGRAM, 0);
	if (uring && fd < 0)
		check_skip("this kernel has no io_uring");
	NEED(fd >= 0 && dup2(fd, 20) == 20 && !close(fd));
	check_ready();
	check_wait();
	if (skipped)
		CHECK(fcntl(20, F_GETFD) < 0 && errno == EBADF);
	else
		CHECK(fcntl(20, F_GETFD) == 0);
	return check_end();
}
