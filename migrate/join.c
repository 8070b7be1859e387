// SPDX-License-Identifier: GPL-2.0
/* See join.h. */
#include "migrate/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "migrate/relay.h"
#include "migrate/spool.h"
#include "report/report.h"
#include "restart/link.h"

/* The folder's path may be longer than that of a socket. */
static struct sockaddr_un address_in(int folder)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SPOOL_SOCKET, folder);
	return a;
}

int join_listen(void)
{
	struct sockaddr_un a = address_in(spool_fd());
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1))
		return fd;
	report_errno(-errno, "%s/" SPOOL_SOCKET, spool_path());
	if (fd >= 0)
		close(fd);
	return report_error();
}

int join_take(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return fd < 0 ? report_errno(-errno, "the connection for --lazy") : fd;
}

static int connect_in(const char *spool)
{
	int folder = open(spool, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = address_in(folder);

	if (folder < 0 || fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		report_errno(-errno, "%s/" SPOOL_SOCKET, spool);
	if (folder >= 0)
		close(folder);
	if (!report_error())
		return fd;
	if (fd >= 0)
		close(fd);
	return report_error();
}

int join_pass_on(const char *spool)
{
	const struct link source = { .in = STDIN_FILENO, .out = STDOUT_FILENO };
	int fd = connect_in(spool), err;
	struct relay_way requests = { fd, STDOUT_FILENO, .ends = true };
	struct relay_way pages = { STDIN_FILENO, fd, .ends = true };

	if (fd < 0)
		return fd;
	err = link_send(&source, LINK_JOINED, NULL, 0);
	if (!err)
		err = relay_both(&requests, &pages);
	close(fd);
	return err ? report_errno(err, "the connection for --lazy") : 0;
}
