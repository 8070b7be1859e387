// SPDX-License-Identifier: GPL-2.0
/*
 * The filter of a socket (SO_ATTACH_FILTER) and its lock, saved among the options.
 * It comes back last: what is in the queues has passed it already, or came before it.
 */
#include "resource/socket_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

bool socket_filter_is(const Kcr__SocketOption *o)
{
	return o->level == SOL_SOCKET &&
	       (o->name == SO_ATTACH_FILTER || o->name == SO_LOCK_FILTER);
}

static int save_lock(const struct file_probe *probe, Kcr__SocketOption ***list, size_t *count)
{
	int lock = socket_value(probe->fd, SO_LOCK_FILTER);

	return lock <= 0 ? 0 : socket_option_add(list, count, SOL_SOCKET, SO_LOCK_FILTER, &lock,
						 sizeof(lock));
}

int socket_filter_save(struct file_table *t, const struct file_probe *probe,
		       Kcr__SocketOption ***list, size_t *count)
{
	struct sock_filter *filter;
	socklen_t length = 0;		/* in instructions, not bytes */
	int err;

	if (getsockopt(probe->fd, SOL_SOCKET, SO_GET_FILTER, NULL, &length)) {
		if (errno == EACCES)
			return file_unsupported(t, "a socket with an eBPF filter");
		return errno == ENOPROTOOPT ? 0 :
			file_save_error(probe, -errno, "cannot query its filter");
	}
	if (!length)
		return save_lock(probe, list, count);
	filter = calloc(length, sizeof(*filter));
	if (!filter)
		return report_errno(-ENOMEM, "saving a socket");
	if (getsockopt(probe->fd, SOL_SOCKET, SO_GET_FILTER, filter, &length))
		err = file_save_error(probe, -errno, "cannot query its filter");
	else
		err = socket_option_add(list, count, SOL_SOCKET, SO_ATTACH_FILTER, filter,
					length * sizeof(*filter));
	free(filter);
	return err ?: save_lock(probe, list, count);
}

static int set(int fd, const Kcr__SocketOption *o)
{
	struct sock_fprog program = {
		.len = o->value.len / sizeof(struct sock_filter),
		.filter = (struct sock_filter *)o->value.data,
	};
	bool filter = o->name == SO_ATTACH_FILTER;

	return setsockopt(fd, SOL_SOCKET, o->name, filter ? (void *)&program : o->value.data,
			  filter ? sizeof(program) : o->value.len) ? -errno : 0;
}

/* The filter is before its lock in the list. */
int socket_filter_set(const Kcr__File *file, int fd, Kcr__SocketOption *const *list, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		if (socket_filter_is(list[i]))
			err = set(fd, list[i]);
	return err ? rebuild_error(file, err, "cannot set its filter") : 0;
}

/* Packet sockets have theirs before any packet can come. */
int socket_filter_rebuild(struct rebuild *r, const Kcr__File *file)
{
	Kcr__SocketOption **list = NULL;
	size_t count = 0;

	if (file->kind_case == KCR__FILE__KIND_INET_SOCKET) {
		list = file->inet_socket->option;
		count = file->inet_socket->n_option;
	} else if (file->kind_case == KCR__FILE__KIND_UNIX_SOCKET) {
		list = file->unix_socket->option;
		count = file->unix_socket->n_option;
	} else if (file->kind_case == KCR__FILE__KIND_NETLINK_SOCKET) {
		list = file->netlink_socket->option;
		count = file->netlink_socket->n_option;
	}
	return socket_filter_set(file, r->file_fd[file->id - 1], list, count);
}
