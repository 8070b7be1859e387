// SPDX-License-Identifier: GPL-2.0
#include "resource/reopen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/fanotify.h"
#include "resource/file.h"
#include "resource/inet_raw.h"

#define PORT_START	"sys/net/ipv4/ip_unprivileged_port_start"
#define FIRST_FREE_PORT	1024		/* without that */
#define PIPE_MOST	"sys/fs/pipe-max-size"

static int complain(enum reopen_rule rule, int err, const char *what)
{
	const char *why = err == -ESTALE ? "its name does not lead to it: another file system hides "
			  "it, or it comes from another mount namespace" : strerror(-err);

	if (rule == REOPEN_REFUSE)
		return report_fail(err, "%s: a restart could not open it again (%s); without a signal "
				   "for the program it is saved all the same", what, why);
	if (rule == REOPEN_WARN)
		report_warn("%s: a restart cannot open it again (%s)", what, why);
	return 0;
}

/* As the caller, whose user is most likely the one who will restart it. */
static int check_access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) ? -errno : 0;
}

static int access_mode(int flags)
{
	if (flags & O_PATH)
		return F_OK;
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return R_OK;
	case O_WRONLY:
		return W_OK;
	default:
		return R_OK | W_OK;
	}
}

/* Where a restart opens it; NULL: it makes a new one. */
static const char *path_of(const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_REGULAR:
		return file->regular->deleted || file->regular->shared_memory ?
		       NULL : file->regular->path;
	case KCR__FILE__KIND_DIRECTORY:
		return file->directory->deleted ? NULL : file->directory->path;
	case KCR__FILE__KIND_PIPE:
		return file->pipe->fifo_path;
	default:
		return NULL;
	}
}

static int check_path(const struct file_probe *probe, const char *path)
{
	struct stat st;

	if (probe->fs.f_type == PROC_SUPER_MAGIC)
		return 0;		/* has new inodes at any time; own_proc.c */
	if (!lstat(path, &st) && (st.st_ino != probe->st.st_ino || st.st_dev != probe->st.st_dev))
		return -ESTALE;
	return check_access(path, access_mode(probe->flags));
}

/* What was in a named pipe is written to it again. */
static int check_fifo(const Kcr__Pipe *pipe)
{
	bool filled = pipe->has_contents || pipe->n_packet_contents;

	return filled ? check_access(pipe->fifo_path, W_OK) : 0;
}

static bool is_unix_socket(const Kcr__File *file)
{
	return file && file->kind_case == KCR__FILE__KIND_UNIX_SOCKET;
}

/* Does a socket that listens have this name? */
static bool is_listened_at(const struct file_table *t, const ProtobufCBinaryData *name)
{
	for (size_t id = 1; id <= file_table_count(t) && name->len; id++) {
		const Kcr__File *f = file_table_get(t, id);

		if (is_unix_socket(f) && f->unix_socket->listening &&
		    f->unix_socket->name.len == name->len &&
		    !memcmp(f->unix_socket->name.data, name->data, name->len))
			return true;
	}
	return false;
}

/* Of a stream: it is only made with its name if it connects to a socket that is saved, too. */
static bool is_bound_again(const struct file_table *t, const Kcr__UnixSocket *u)
{
	const Kcr__File *peer = u->peer_file_id ? file_table_get(t, u->peer_file_id) : NULL;

	if (u->listening || u->type == SOCK_DGRAM || !u->connected)
		return true;
	return is_unix_socket(peer) && is_listened_at(t, &peer->unix_socket->name);
}

/* Cuts off the last part of an absolute path; false: it has none. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (!path[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

/*
 * The folder in which a Unix socket gets its name; if that does not exist, and its node was removed, the
 * one in which it is made again for a moment.
 */
static int check_name(const struct file_table *t, const struct file_probe *probe,
		      const Kcr__File *file)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	char path[PATH_MAX + 128], cwd[PROC_PATH];
	const char *folder = u->folder ?: proc_path(cwd, probe->thread, "cwd");
	int err;

	if (!u->name.len || !u->name.data[0] || u->pending || !is_bound_again(t, u))
		return 0;
	if (u->name.data[0] == '/')
		folder = "";
	snprintf(path, sizeof(path), "%s/%.*s", folder, (int)u->name.len, (const char *)u->name.data);
	do
		err = cut(path) ? check_access(path, W_OK | X_OK) : 0;
	while (err == -ENOENT && u->unlinked);
	return err;
}

static unsigned int first_free_port(void)
{
	char text[16];

	if (proc_read(PROC_ROOT, PORT_START, text, sizeof(text)) <= 0)
		return FIRST_FREE_PORT;
	return strtoul(text, NULL, 10);
}

/* The port that a restart binds it to; 0: none, or it is a connection's. */
static unsigned int port_of(const Kcr__InetSocket *socket)
{
	struct sockaddr_in6 address = {};	/* the port is where sockaddr_in has it */

	if (socket->remote.len || socket->local.len > sizeof(address) ||
	    socket->local.len < sizeof(struct sockaddr_in))
		return 0;
	memcpy(&address, socket->local.data, socket->local.len);
	return ntohs(address.sin6_port);
}

static int check_inet(const Kcr__InetSocket *socket)
{
	unsigned int port = port_of(socket);

	if (inet_raw_is(socket))
		return inet_raw_try(socket);

	return port && port < first_free_port() && !have_capability(CAP_NET_BIND_SERVICE) ?
	       -EACCES : 0;
}

/* Written again whatever the program may do with it, once a lease says that nobody else has it. */
static int check_object(const struct file_probe *probe, const Kcr__RegularFile *regular)
{
	if (!regular->shared_memory)
		return 0;
	if (probe->st.st_uid != geteuid() && !have_capability(CAP_LEASE))
		return -EACCES;
	return check_access(regular->path, R_OK | W_OK);
}

/* By its path, or the usual one. */
static int check_device(const struct file_probe *probe, const Kcr__Device *device)
{
	int mode = access_mode(probe->flags);

	if (!device->deleted && !check_path(probe, device->path))
		return 0;
	return check_access(device_usual_path(device->rdev), mode);
}

static int check_watch(const Kcr__InotifyWatch *watch)
{
	return check_access(watch->path, R_OK);
}

static int check_watches(const Kcr__Inotify *inotify)
{
	int err = 0;

	for (size_t i = 0; i < inotify->n_watch && !err; i++)
		err = check_watch(inotify->watch[i]);
	return err;
}

/* One that is made anew, not cr_restart's input or output. */
static int check_capacity(const Kcr__Pipe *pipe)
{
	char text[16];

	if (pipe->other_end_outside || have_capability(CAP_SYS_RESOURCE) ||
	    proc_read(PROC_ROOT, PIPE_MOST, text, sizeof(text)) <= 0)
		return 0;
	return pipe->capacity > strtoul(text, NULL, 10) ? -EPERM : 0;
}

static int check_file(const struct file_table *t, const struct file_probe *probe,
		      const Kcr__File *file)
{
	const char *path = path_of(file);

	if (path && file->kind_case == KCR__FILE__KIND_PIPE)
		return check_path(probe, path) ?: check_fifo(file->pipe);
	if (path)
		return check_path(probe, path);
	switch (file->kind_case) {
	case KCR__FILE__KIND_UNIX_SOCKET:
		return check_name(t, probe, file);
	case KCR__FILE__KIND_INET_SOCKET:
		return check_inet(file->inet_socket);
	case KCR__FILE__KIND_REGULAR:
		return check_object(probe, file->regular);
	case KCR__FILE__KIND_DEVICE:
		return check_device(probe, file->device);
	case KCR__FILE__KIND_INOTIFY:
		return check_watches(file->inotify);
	case KCR__FILE__KIND_FANOTIFY:
		return fanotify_check(file->fanotify);
	case KCR__FILE__KIND_PACKET_SOCKET:
		return have_capability(CAP_NET_RAW) ? 0 : -EPERM;
	case KCR__FILE__KIND_PIPE:
		return check_capacity(file->pipe);
	default:
		return 0;
	}
}

/* The first watched path that a restart would not get. */
static const char *failing_watch(const Kcr__Inotify *inotify)
{
	for (size_t i = 0; i < inotify->n_watch; i++)
		if (check_watch(inotify->watch[i]))
			return inotify->watch[i]->path;
	return "";
}

/* For a message: whose it is, and what. */
static void describe(const struct file_probe *probe, const Kcr__File *file, char *text, size_t size)
{
	int length = probe->number < 0 ?
		     snprintf(text, size, "process %d, mapped file", probe->pid) :
		     snprintf(text, size, "process %d, descriptor %d", probe->pid, probe->number);

	if (file->kind_case == KCR__FILE__KIND_UNIX_SOCKET)
		snprintf(text + length, size - length, " (Unix socket %.*s)",
			 (int)file->unix_socket->name.len, (char *)file->unix_socket->name.data);
	else if (file->kind_case == KCR__FILE__KIND_INET_SOCKET && inet_raw_is(file->inet_socket))
		snprintf(text + length, size - length, file->inet_socket->type == SOCK_RAW ?
			 " (raw socket, which needs CAP_NET_RAW)" :
			 " (ping socket, which needs net.ipv4.ping_group_range)");
	else if (file->kind_case == KCR__FILE__KIND_INET_SOCKET)
		snprintf(text + length, size - length, " (port %u)", port_of(file->inet_socket));
	else if (file->kind_case == KCR__FILE__KIND_PACKET_SOCKET)
		snprintf(text + length, size - length, " (packet socket, which needs CAP_NET_RAW)");
	else if (file->kind_case == KCR__FILE__KIND_FANOTIFY)
		snprintf(text + length, size - length, " (fanotify, which needs CAP_SYS_ADMIN)");
	else if (file->kind_case == KCR__FILE__KIND_INOTIFY)
		snprintf(text + length, size - length, " (inotify of %s)",
			 failing_watch(file->inotify));
	else if (file->kind_case == KCR__FILE__KIND_PIPE && !file->pipe->fifo_path)
		snprintf(text + length, size - length, " (pipe of %u bytes)", file->pipe->capacity);
	else
		snprintf(text + length, size - length, " (%s)", probe->link);
}

int reopen_files(const struct file_table *t, enum reopen_rule rule)
{
	char what[PATH_MAX + 64];
	int err = 0;

	for (size_t id = 1; id <= file_table_count(t) && rule != REOPEN_IGNORE && !err; id++) {
		const struct file_probe *probe = file_table_probe(t, id);
		const Kcr__File *file = file_table_get(t, id);

		err = check_file(t, probe, file);
		if (!err)
			continue;
		describe(probe, file, what, sizeof(what));
		err = complain(rule, err, what);
	}
	return err;
}

int reopen_folder(const Kcr__Process *p, enum reopen_rule rule)
{
	char what[PATH_MAX + 64];
	int err;

	if (rule == REOPEN_IGNORE || !p->cwd || p->cwd_removed)
		return 0;
	err = p->cwd_at_path ? check_access(p->cwd, X_OK) : -ESTALE;
	if (!err)
		return 0;
	snprintf(what, sizeof(what), "process %d, working folder %s", p->pid, p->cwd);
	return complain(rule, err, what);
}
