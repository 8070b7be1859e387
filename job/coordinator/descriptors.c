// SPDX-License-Identifier: GPL-2.0
/*
 * A connection for every node may be more file descriptors than mpirun is allowed by
 * default.  The soft limit is raised when it is reached and not before, because the
 * ranks that mpirun starts inherit it.  If the hard limit is too low, strangers are
 * closed, and then the new connection: the job runs, but cannot be saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/coordinator/root_internal.h"

static int spare = -1;			/* freed to accept a connection in order to close it */

int descriptors_keep(void)
{
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return spare < 0 ? -errno : 0;
}

static bool raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &limit);
}

static bool has_room(const struct root *root)
{
	struct rlimit limit;

	/* Also for those that do not exist yet. */
	return getrlimit(RLIMIT_NOFILE, &limit) ||
	       limit.rlim_cur >= root->nr_nodes + strangers_count() + POLLED_MAX || raise_limit();
}

static void complain(void)
{
	static bool told;

	if (!told)
		say_line("mpirun needs an open file for each node, more than it may have: raise the "
			 "hard limit (ulimit -Hn)");
	told = true;
}

int descriptors_accept(struct root *root, int listener)
{
	int fd;

	do {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && errno == EMFILE && (raise_limit() || strangers_drop_oldest()));
	while (fd >= 0 && !has_room(root) && strangers_drop_oldest())
		;
	if (fd >= 0 && has_room(root))
		return fd;
	if (fd < 0 && errno != EMFILE && errno != ENFILE)
		return -errno;
	complain();
	if (fd < 0) {
		close(spare);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	}
	if (fd >= 0)
		close(fd);
	if (fcntl(spare, F_GETFD) < 0)
		descriptors_keep();
	return -EMFILE;
}
