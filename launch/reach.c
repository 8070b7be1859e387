// SPDX-License-Identifier: GPL-2.0
/* Finding or starting the daemon of this node.  See reach.h. */
#include "launch/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job/request.h"
#include "proc/spawn.h"
#include "report/report.h"

#define DAEMON		"cr_node"
#define ATTEMPTS	500
#define PAUSE_NS	20000000	/* between two */

static socklen_t address_of(const char *job, struct sockaddr_un *address)
{
	char host[HOST_NAME_MAX + 1] = "";
	int length;

	gethostname(host, sizeof(host) - 1);
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			  "kcr-mpi-job.%.*s.%s", REACH_JOB, job, host);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

/* -ECONNREFUSED: there is none; -EPERM with a message: the name is another user's. */
static int connect_daemon(const struct sockaddr_un *address, socklen_t length)
{
	struct ucred holder = { 0 };
	socklen_t size = sizeof(holder);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return report_errno(-errno, "no socket");
	if (connect(fd, (const struct sockaddr *)address, length)) {
		err = -errno;
	} else if (!job_peer_allowed(fd)) {
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size);
		err = report_fail(-EPERM, "process %d of user %u holds the name of the socket of "
				  "this node's daemon", holder.pid, holder.uid);
	}
	if (err)
		close(fd);
	return err ?: fd;
}

/* In the process that becomes the daemon: nothing of the launcher's stays open but its output. */
static void become_daemon(int listener)
{
	char *path = spawn_beside(DAEMON);
	int null = open("/dev/null", O_RDWR);

	if (!path)
		_exit(127);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (listener == REACH_LISTENER)
		fcntl(listener, F_SETFD, 0);
	else
		dup2(listener, REACH_LISTENER);
	close_range(REACH_LISTENER + 1, ~0u, 0);
	execl(path, DAEMON, (char *)NULL);
	fprintf(stderr, "KCR: cannot start %s: %s\n", path, strerror(errno));
	_exit(127);
}

/* Of another session and no child of ours: whoever ends the proxies does not end it. */
static int start_daemon(int listener)
{
	pid_t child = fork();

	if (!child) {
		setsid();
		child = fork();
		if (!child)
			become_daemon(listener);
		_exit(child < 0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		return report_errno(-errno, "cannot start the daemon of this node");
	return 0;
}

/* 0: this process had the name, and a daemon has it now; or -EADDRINUSE or another -errno. */
static int take_name(const struct sockaddr_un *address, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;

	if (fd < 0)
		return report_errno(-errno, "no socket");
	if (bind(fd, (const struct sockaddr *)address, length))
		err = -errno;
	else if (listen(fd, SOMAXCONN))
		err = report_errno(-errno, "cannot listen for the node's ranks");
	else
		err = start_daemon(fd);
	close(fd);
	return err;
}

int reach_daemon(const char *job)
{
	const struct timespec nap = { 0, PAUSE_NS };
	struct sockaddr_un address;
	socklen_t length = address_of(job, &address);
	int fd = -ECONNREFUSED, err;

	for (int i = 0; i < ATTEMPTS; i++) {
		fd = connect_daemon(&address, length);
		if (fd != -ECONNREFUSED && fd != -EAGAIN)
			return fd;
		err = fd == -EAGAIN ? -EADDRINUSE : take_name(&address, length);
		if (err && err != -EADDRINUSE)
			return err;
		if (err)
			nanosleep(&nap, NULL);
	}
	return report_errno(fd, "no daemon answers on this node");
}
