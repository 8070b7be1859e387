// SPDX-License-Identifier: GPL-2.0
/*
 * Unix sockets: streams, datagrams, sequenced packets; pairs, named and
 * listening ones.  This file saves; unix_rebuild.c connects them again.
 * A peer outside the tree is restored as closed, except that a
 * datagram socket is connected to its address again.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libcr/record.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/not_accepted.h"
#include "resource/socket.h"
#include "resource/unix_diag.h"

#define NAME_OFFSET	offsetof(struct sockaddr_un, sun_path)

static bool match(const struct file_probe *probe)
{
	return socket_family(probe) == AF_UNIX;
}

/* Is this the node that it was bound to?  The socket tells only root, for whom it matters. */
static bool is_own_node(const struct file_probe *probe, const struct stat *named)
{
	int node = ioctl(probe->fd, SIOCUNIXFILE);
	struct stat st;
	bool own;

	if (node < 0)
		return false;
	own = !fstat(node, &st) && st.st_ino == named->st_ino && st.st_dev == named->st_dev;
	close(node);
	return own;
}

/* Saves owner and mode of the node that the name refers to, as seen by the program. */
static void save_node(const struct file_probe *probe, const char *name, Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;
	char path[PROC_PATH], below[PROC_PATH];
	struct stat st;

	if (name[0] != '/') {
		snprintf(below, sizeof(below), "cwd/%s", name);
		name = proc_path(path, probe->thread, below);
	}
	if (lstat(name, &st) || !S_ISSOCK(st.st_mode)) {
		u->has_unlinked = u->unlinked = true;
	} else {
		u->has_mode = u->has_uid = u->has_gid = true;
		u->mode = st.st_mode & 07777;
		u->uid = st.st_uid;
		u->gid = st.st_gid;
		file->has_at_path = file->at_path = is_own_node(probe, &st);
	}
}

static int save_names(const struct file_probe *probe, Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;
	struct sockaddr_un a = {};
	socklen_t length = sizeof(a) - 1;
	int err = 0;

	if (!getsockname(probe->fd, (struct sockaddr *)&a, &length) && length > NAME_OFFSET) {
		u->has_name = true;
		err = file_bytes(&u->name, a.sun_path, length - NAME_OFFSET);
		if (!err && a.sun_path[0])
			save_node(probe, a.sun_path, file);
	}
	memset(&a, 0, sizeof(a));
	length = sizeof(a) - 1;
	if (!err && !getpeername(probe->fd, (struct sockaddr *)&a, &length) &&
	    length > NAME_OFFSET) {
		u->has_peer_name = true;
		err = file_bytes(&u->peer_name, a.sun_path, length - NAME_OFFSET);
	}
	return err;
}

/*
 * The listening socket of the tree that has not accepted this connection yet;
 * 0: none.  Its other end has no inode yet, so ours is listed.
 */
static uint32_t find_listener(struct file_table *t, ino_t own)
{
	struct unix_state state;

	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (!match(p) || socket_value(p->fd, SO_ACCEPTCONN) != 1 ||
		    unix_diag(t, p->st.st_ino, &state))
			continue;
		for (size_t i = 0; i < state.nr_pending; i++)
			if (state.pending[i] == own)
				return id;
	}
	return 0;
}

static int save_peer(struct file_table *t, const struct file_probe *probe,
		     const struct unix_state *state, Kcr__UnixSocket *u)
{
	u->has_connected = true;
	u->connected = state->state == TCP_ESTABLISHED;
	u->has_peer_file_id = true;
	if (state->peer)
		u->peer_file_id = file_table_find_inode(t, probe->st.st_dev, state->peer);
	if (u->peer_file_id || !u->connected || u->type == SOCK_DGRAM) {
		u->has_peer_outside = u->peer_outside = state->peer && !u->peer_file_id;
		return 0;
	}
	if (!state->peer)
		u->peer_file_id = find_listener(t, probe->st.st_ino);
	if (!u->peer_file_id) {
		u->has_peer_outside = u->peer_outside = true;
		return 0;
	}
	u->has_pending = u->pending = true;
	return 0;
}

/* Is this the program's end of a request to a tool (libcr), which is never in the tree? */
static bool leads_to_tool(const struct file_probe *probe)
{
	static const char name[] = CRI_TOOL_NAME;
	struct sockaddr_un a = {};
	socklen_t length = sizeof(a);

	return !getpeername(probe->fd, (struct sockaddr *)&a, &length) &&
	       length >= NAME_OFFSET + sizeof(name) && !a.sun_path[0] &&
	       !memcmp(a.sun_path + 1, name, sizeof(name) - 1);
}

/* State and peer; what the kernel does not tell is known of requests. */
static int query(struct file_table *t, const struct file_probe *probe, struct unix_state *state)
{
	int err = unix_diag(t, probe->st.st_ino, state);

	if (!err)
		return 0;
	if (leads_to_tool(probe)) {
		*state = (struct unix_state){ .state = TCP_ESTABLISHED };
		return 0;
	}
	return file_unsupported(t, "a Unix socket whose peer is not known (%s): it is in another "
				"network namespace, or the kernel's module unix_diag is missing "
				"(modprobe unix_diag)", strerror(-err));
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__UnixSocket *u = file_new_kind(file, KCR__FILE__KIND_UNIX_SOCKET, sizeof(*u));
	struct unix_state state;
	int err;

	if (!u)
		return -ENOMEM;
	u->type = socket_value(probe->fd, SO_TYPE);
	err = query(t, probe, &state) ?: save_names(probe, file);
	if (err)
		return err;
	if (state.state == TCP_LISTEN && u->type != SOCK_DGRAM) {
		u->has_listening = u->listening = u->has_backlog = true;
		u->backlog = state.backlog;
		err = unix_waiting_save(t, probe, u);
	} else {
		u->has_shut_read = u->has_shut_write = true;
		u->shut_read = state.shutdown & 1;
		u->shut_write = state.shutdown & 2;
		err = save_peer(t, probe, &state, u);
		if (!err && (u->connected || u->type == SOCK_DGRAM))
			err = unix_queue_save(t, probe, u);
	}
	return err ?: socket_options_save(t, probe, AF_UNIX, u->type, 0, &u->option, &u->n_option);
}

const struct file_kind file_kind_unix_socket = {
	.kind = KCR__FILE__KIND_UNIX_SOCKET,
	.name = "Unix socket",
	.match = match,
	.save = save,
	.open = unix_socket_open,
	.complete = unix_socket_complete,
	.finish = unix_socket_finish,
};
