// SPDX-License-Identifier: GPL-2.0
/* mpirun's unix socket: its name, and who owns it.  See request.h. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "job/request.h"
#include "proc/proc.h"
#include "proc/status.h"

#define NAME		"kcr-mpi.%d"
#define PATIENCE_S	5		/* if many want to connect */

static socklen_t address_of(const char *text, struct sockaddr_un *address)
{
	size_t length = strlen(text);		/* they are short */

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path + 1, text, length);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

static int peer_of(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) ? -errno : 0;
}

bool job_peer_allowed(int fd)
{
	struct ucred peer;

	return !peer_of(fd, &peer) && (peer.uid == 0 || peer.uid == geteuid());
}

/* ---- in mpirun ------------------------------------------------------------------ */

static int bind_name(int fd, const char *text)
{
	struct sockaddr_un address;
	socklen_t length = address_of(text, &address);

	return bind(fd, (struct sockaddr *)&address, length) ? -errno : 0;
}

/* The process that listens there, as far as the kernel reports it. */
static void find_holder(const char *text, struct ucred *holder)
{
	struct sockaddr_un address;
	socklen_t length = address_of(text, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) || peer_of(fd, holder))
		*holder = (struct ucred){ .pid = -1 };
	if (fd >= 0)
		close(fd);
}

int job_listen(struct ucred *holder)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;
	uint64_t number;
	char name[64];

	*holder = (struct ucred){ 0 };
	if (fd < 0)
		return -errno;
	snprintf(name, sizeof(name), NAME, getpid());
	err = bind_name(fd, name);
	if (err == -EADDRINUSE) {
		find_holder(name, holder);
		if (getrandom(&number, sizeof(number), 0) == sizeof(number)) {
			snprintf(name, sizeof(name), NAME ".%016" PRIx64, getpid(), number);
			err = bind_name(fd, name);
		}
	}
	if (!err && listen(fd, SOMAXCONN))
		err = -errno;
	if (err)
		close(fd);
	return err ?: fd;
}

/* ---- in a tool ------------------------------------------------------------------ */

/* The user that the process runs as; -1: unknown. */
static uid_t user_of(pid_t pid)
{
	char *status = proc_text(pid, "status", NULL);
	const char *line = status ? status_value(status, "Uid") : NULL;
	unsigned int user;
	uid_t found = line && sscanf(line, "%*u %u", &user) == 1 ? user : (uid_t)-1;

	free(status);
	return found;
}

/*
 * Anybody can take a name, and PIDs are reused: accept only the process itself, and
 * only as the user that it runs as now.
 */
static int connect_name(const char *text, pid_t pid)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t length = address_of(text, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, length) || peer_of(fd, &peer) ||
	    peer.pid != pid || peer.uid != user_of(pid)) {
		close(fd);
		return -ENOENT;
	}
	patience.tv_sec = 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

struct inodes {
	unsigned long *list;
	size_t count, room;
};

static void add_inode(struct inodes *i, unsigned long inode)
{
	if (i->count == i->room) {
		size_t room = 2 * i->room + 64;
		unsigned long *grown = realloc(i->list, room * sizeof(*grown));

		if (!grown)
			return;
		i->list = grown;
		i->room = room;
	}
	i->list[i->count++] = inode;
}

/* The sockets that the process has open, as far as permissions allow. */
static void sockets_of(pid_t pid, struct inodes *out)
{
	DIR *list = proc_list(pid, "fd");
	char name[32], link[64];
	unsigned long inode;
	int fd;

	while ((fd = proc_next(list)) >= 0) {
		snprintf(name, sizeof(name), "fd/%d", fd);
		if (proc_link(pid, name, link, sizeof(link)) > 0 &&
		    sscanf(link, "socket:[%lu]", &inode) == 1)
			add_inode(out, inode);
	}
	if (list)
		closedir(list);
}

static bool has_inode(const struct inodes *i, unsigned long inode)
{
	for (size_t k = 0; k < i->count; k++)
		if (i->list[k] == inode)
			return true;
	return false;
}

/* The name it uses because another process had the usual one. */
static bool find_other(pid_t pid, char *name, size_t room)
{
	FILE *list = proc_stream(PROC_ROOT, "net/unix");
	struct inodes own = { 0 };
	char line[512], start[32];
	bool found = false;
	unsigned long inode;
	int at;

	sockets_of(pid, &own);
	snprintf(start, sizeof(start), "@" NAME ".", pid);
	while (list && !found && fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &inode, &at) != 1 ||
		    strncmp(line + at, start, strlen(start)) || !has_inode(&own, inode))
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = snprintf(name, room, "%s", line + at + 1) < (int)room;
	}
	if (list)
		fclose(list);
	free(own.list);
	return found;
}

static int connect_process(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), NAME, pid);
	fd = connect_name(name, pid);
	if (fd < 0 && find_other(pid, name, sizeof(name)))
		fd = connect_name(name, pid);
	return fd;
}

int job_connect(pid_t pid)
{
	int fd = connect_process(pid);
	pid_t parent = fd == -ENOENT ? stat_parent(pid) : 0;

	/* A process may have been started by another user's, as by su(1). */
	return parent > 1 && user_of(parent) == user_of(pid) ? connect_process(parent) : fd;
}
