// SPDX-License-Identifier: GPL-2.0
/* Finding or starting the daemon of this node.  See reach.h. */
#include "launch/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
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
#define TO_PROXY	(REACH_LISTENER + 1)
#define ATTEMPTS	500
#define ATTEMPTS_STEP	3000		/* the scheduler may take its time */
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

static void fail(int to_proxy)
{
	int err = errno;

	if (write(to_proxy, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/*
 * In the process that becomes the daemon: nothing of the launcher's stays open but its output.
 * `to_proxy` gets the errno if it cannot.
 */
static void become_daemon(const char *path, int listener, int to_proxy)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	listener = fcntl(listener, F_DUPFD, TO_PROXY + 1);
	to_proxy = fcntl(to_proxy, F_DUPFD, TO_PROXY + 1);
	dup2(listener, REACH_LISTENER);
	dup3(to_proxy, TO_PROXY, O_CLOEXEC);
	close_range(TO_PROXY + 1, ~0u, 0);
	execl(path, DAEMON, (char *)NULL);
	fail(TO_PROXY);
}

/* Of another session and no child of ours: whoever ends the proxies does not end it. */
static int fork_daemon(const char *path, int listener)
{
	int ends[2], err = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child) {
		setsid();
		child = fork();
		if (!child)
			become_daemon(path, listener, ends[1]);
		if (child < 0)
			fail(ends[1]);
		_exit(0);
	}
	if (child < 0)
		err = errno;
	close(ends[1]);
	if (child > 0 && read(ends[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return -err;
}

static int start_daemon(const char *path, int listener)
{
	int err = fork_daemon(path, listener);

	return err ? report_errno(err, "cannot start %s", path) : 0;
}

/* A socket that listens, or -errno: -EADDRINUSE without a message. */
static int bind_name(const struct sockaddr_un *address, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;

	if (fd < 0)
		return report_errno(-errno, "no socket");
	if (bind(fd, (const struct sockaddr *)address, length))
		err = -errno;
	else if (listen(fd, SOMAXCONN))
		err = report_errno(-errno, "cannot listen for the node's ranks");
	if (err)
		close(fd);
	return err ?: fd;
}

/* 0: this process had the name, and a daemon has it now; or -EADDRINUSE or another -errno. */
static int take_name(const char *path, const struct sockaddr_un *address, socklen_t length)
{
	int fd, err;

	/* Others that connect to a socket that nobody will serve would not learn why. */
	if (access(path, X_OK))
		return report_errno(-errno, "cannot start %s", path);
	fd = bind_name(address, length);
	if (fd < 0)
		return fd;
	err = start_daemon(path, fd);
	close(fd);
	return err;
}

int reach_serve(const char *job)
{
	struct sockaddr_un address;
	socklen_t length = address_of(job, &address);
	int fd = bind_name(&address, length), err = 0;

	if (fd < 0)
		return report_error() == fd ? fd : report_errno(fd, "no name for the node's daemon");
	if (fd != REACH_LISTENER) {
		if (dup2(fd, REACH_LISTENER) < 0)
			err = report_errno(-errno, "no descriptor");
		close(fd);
	}
	return err;
}

void reach_name_node(bool by_step, char *name, size_t room)
{
	const char *given = by_step ? getenv("SLURMD_NODENAME") : NULL;

	memset(name, 0, room);
	if (given && *given)
		snprintf(name, room, "%s", given);
	else
		gethostname(name, room - 1);
}

static int reach(const char *path, const char *job)
{
	const struct timespec nap = { 0, PAUSE_NS };
	const bool by_step = getenv(REACH_STEP_VARIABLE);
	struct sockaddr_un address;
	socklen_t length = address_of(job, &address);
	int fd = -ECONNREFUSED, err;

	for (int i = 0; i < (by_step ? ATTEMPTS_STEP : ATTEMPTS); i++) {
		fd = connect_daemon(&address, length);
		if (fd != -ECONNREFUSED && fd != -EAGAIN)
			return fd;
		err = by_step || fd == -EAGAIN ? -EADDRINUSE : take_name(path, &address, length);
		if (err && err != -EADDRINUSE)
			return err;
		if (err)
			nanosleep(&nap, NULL);
	}
	return report_errno(fd, "no daemon answers on this node");
}

int reach_daemon(const char *job)
{
	char *path = spawn_beside(DAEMON);
	int fd = path ? reach(path, job) : report_fail(-ENOMEM, "no memory");

	free(path);
	return fd;
}
