// SPDX-License-Identifier: GPL-2.0
/*
 * Has a descriptor of a kind that cannot be saved, number 20: a netlink socket that is
 * connected to another program.  The argument `skipped` says that the checkpoint went on
 * without it: then it is closed.
 */
#include <linux/netlink.h>
#include <sys/socket.h>

#include "check.h"

static int connected_netlink(void)
{
	struct sockaddr_nl other = { .nl_family = AF_NETLINK, .nl_pid = 4242 };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);

	return fd < 0 || connect(fd, (struct sockaddr *)&other, sizeof(other)) ? -1 : fd;
}

int main(int argc, char **argv)
{
	const char *what;
	int fd;

	check_begin(argc, argv);
	what = argc > 3 ? argv[3] : "";
	fd = connected_netlink();
	NEED(fd >= 0 && dup2(fd, 20) == 20 && !close(fd));
	check_ready();
	check_wait();
	if (!strcmp(what, "skipped"))
		CHECK(fcntl(20, F_GETFD) < 0 && errno == EBADF);
	else
		CHECK(fcntl(20, F_GETFD) == 0);
	return check_end();
}
