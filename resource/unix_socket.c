// SPDX-License-Identifier: GPL-2.0
/*
 * Unix sockets: streams, datagrams, sequenced packets; pairs, named and
 * listening ones.  This file saves; unix_rebuild.c connects them again.
 * A peer outside the tree is restored as closed, except that a
 * datagram socket is connected to its address again.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <linux/magic.h>
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
#include "resource/root_folder.h"
#include "resource/socket.h"
#include "resource/socket_hidden.h"
#include "resource/socket_urgent.h"
#include "resource/unix_diag.h"

#define NAME_OFFSET	offsetof(struct sockaddr_un, sun_path)

static bool match(const struct file_probe *probe)
{
	return socket_family(probe) == AF_UNIX;
}

/* The node that it was bound to; false: the socket tells only root. */
static bool stat_node(const struct file_probe *probe, struct stat *st)
{
	int node = ioctl(probe->fd, SIOCUNIXFILE);
	bool known = node >= 0 && !fstat(node, st);

	if (node >= 0)
		close(node);
	return known;
}

/* Is this that node?  -EPERM: the caller is not told. */
static int is_own_node(const struct file_probe *probe, const struct stat *named)
{
	struct stat st;

	if (!stat_node(probe, &st))
		return -EPERM;
	return st.st_ino == named->st_ino && st.st_dev == named->st_dev;
}

/* Likewise as sock_diag tells everybody; overlayfs shows stat(2) other numbers. */
static bool may_be_own_node(const struct file_probe *probe, const struct unix_state *state,
			    const char *path, const struct stat *named)
{
	int own = is_own_node(probe, named);
	struct statfs fs;

	return own >= 0 ? own : state->node == (uint32_t)named->st_ino || statfs(path, &fs) ||
				fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* The name that it was bound to; false: it has none that is a path. */
static bool get_name(const struct file_probe *probe, struct sockaddr_un *a)
{
	socklen_t length = sizeof(*a) - 1;

	memset(a, 0, sizeof(*a));
	return !getsockname(probe->fd, (struct sockaddr *)a, &length) && a->sun_path[0];
}

static bool is_at(const struct file_probe *probe, const char *path)
{
	struct stat st;

	return !lstat(path, &st) && is_own_node(probe, &st) == 1;
}

/*
 * The folder that was the working folder when it was bound to this relative name, and the path of
 * its node; false: only root is told, and only while the node has this name.
 */
static bool find_folder(const struct file_probe *probe, const char *name, char folder[PATH_MAX],
			char path[PATH_MAX])
{
	int node = ioctl(probe->fd, SIOCUNIXFILE);
	size_t length = 0, end;

	while (!strncmp(name, "./", 2))
		name += 2;
	if (node >= 0) {
		if (proc_fd_link(node, path, PATH_MAX) > 0)
			length = strlen(path);
		close(node);
	}
	if (length <= strlen(name))
		return false;
	end = length - strlen(name) - 1;
	if (path[end] != '/' || strcmp(path + end + 1, name) || !is_at(probe, path))
		return false;
	snprintf(folder, PATH_MAX, "%.*s", end ? (int)end : 1, path);
	return true;
}

/*
 * Its name as a path of the caller; false: it has none that is a path.  folder: see find_folder(),
 * "": the working folder, or not known.
 */
static bool node_path(const struct file_probe *probe, char path[PATH_MAX], char folder[PATH_MAX])
{
	char below[PROC_PATH], here[PROC_PATH];
	struct sockaddr_un a;

	folder[0] = '\0';
	if (!get_name(probe, &a))
		return false;
	if (a.sun_path[0] == '/') {
		snprintf(path, PATH_MAX, "%s", a.sun_path);
		return true;
	}
	snprintf(below, sizeof(below), "cwd/%s", a.sun_path);
	proc_path(here, probe->thread, below);
	if (is_at(probe, here) || !find_folder(probe, a.sun_path, folder, path))
		snprintf(path, PATH_MAX, "%s", here);
	return true;
}

/* Has a socket of the tree this name now? */
static bool is_named_in_tree(struct file_table *t, const char *path, const struct stat *named)
{
	char other[PATH_MAX], folder[PATH_MAX];
	struct unix_state state;
	struct stat st;

	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (match(p) && node_path(p, other, folder) && !lstat(other, &st) &&
		    st.st_ino == named->st_ino && st.st_dev == named->st_dev &&
		    !unix_diag(t, p->st.st_ino, &state) && may_be_own_node(p, &state, path, named))
			return true;
	}
	return false;
}

/*
 * Tells of a node that is not at the socket's name any more, but somewhere: peers reach the socket by
 * another name, or in another folder, only until the restart.  Only root is told whether it was removed.
 */
static void warn_of_place(const struct file_table *t, const struct file_probe *probe, const Kcr__UnixSocket *u)
{
	struct stat st;
	bool known = stat_node(probe, &st);

	if (file_table_is_dry(t) || (known ? !st.st_nlink : u->name.data[0] == '/'))
		return;
	report_warn("process %d: the Unix socket %.*s %s: nobody reaches it by a name after a restart",
		    probe->pid, (int)u->name.len, (const char *)u->name.data, known ?
		    "has another name by now, or is in another folder" :
		    "is not in the working folder, and only root's cr_checkpoint could find it elsewhere");
}

static int save_owner(const struct file_probe *probe, const struct stat *st, const char *folder,
		      Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;

	u->has_mode = u->has_uid = u->has_gid = true;
	u->mode = st->st_mode & 07777;
	u->uid = st->st_uid;
	u->gid = st->st_gid;
	file->has_at_path = file->at_path = is_own_node(probe, st) == 1;
	if (!folder[0])
		return 0;
	u->folder = file_string(folder);
	return u->folder ? 0 : -ENOMEM;
}

/*
 * Saves owner and mode of the node that the name refers to, as seen by the program.  If
 * that is not its own, the name must be free at the restart, or become so.
 */
static int save_node(struct file_table *t, const struct file_probe *probe,
		     const struct unix_state *state, Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;
	bool binds = state->state != TCP_ESTABLISHED || u->type == SOCK_DGRAM;
	char path[PATH_MAX], folder[PATH_MAX];
	struct stat st;

	if (!node_path(probe, path, folder))
		return 0;
	if (!lstat(path, &st)) {
		if (S_ISSOCK(st.st_mode) && may_be_own_node(probe, state, path, &st))
			return save_owner(probe, &st, folder, file);
		if (binds && !(S_ISSOCK(st.st_mode) && is_named_in_tree(t, path, &st)))
			return file_unsupported(t, "a Unix socket whose name %s is that of another "
						"file by now", path);
	} else if (binds) {
		warn_of_place(t, probe, u);
	}
	u->has_unlinked = u->unlinked = true;
	return 0;
}

static int save_names(struct file_table *t, const struct file_probe *probe,
		      const struct unix_state *state, Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;
	struct sockaddr_un a = {};
	socklen_t length = sizeof(a) - 1;
	int err = 0;

	if (!getsockname(probe->fd, (struct sockaddr *)&a, &length) && length > NAME_OFFSET) {
		if (a.sun_path[0] == '/' && root_folder_differs(probe->thread) > 0)
			return file_unsupported(t, "a Unix socket with a name in another root folder");
		u->has_name = true;
		err = file_bytes(&u->name, a.sun_path, length - NAME_OFFSET);
		if (!err)
			err = save_node(t, probe, state, file);
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
	/* Before 5.15 (83301b5367a9) a connected datagram socket has another state. */
	u->connected = state->state == TCP_ESTABLISHED || (u->type == SOCK_DGRAM && state->peer);
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
	struct kcr_socket hidden;
	int err;

	if (!u)
		return -ENOMEM;
	u->type = socket_value(probe->fd, SO_TYPE);
	err = socket_hidden_get(t, probe, &hidden) ?: socket_hidden_check(t, &hidden) ?:
	      query(t, probe, &state) ?: save_names(t, probe, &state, file);
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
		err = save_peer(t, probe, &state, u) ?: socket_urgent_check(t, probe);
		if (!err && (u->connected || u->type == SOCK_DGRAM))
			err = unix_queue_save(t, probe, u);
	}
	err = err ?: unix_peer_save(probe, u);
	return err ?: socket_options_save(t, probe, AF_UNIX, u->type, 0, &u->option, &u->n_option);
}

/* As one whose peer is outside. */
static int leave_out(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__UnixSocket *u = file->unix_socket;

	(void)probe;
	if (!file_table_left_out(t, u->peer_file_id))
		return 0;
	u->peer_file_id = 0;
	u->has_pending = u->pending = false;
	u->has_peer_outside = u->peer_outside = true;
	return 0;
}

const struct file_kind file_kind_unix_socket = {
	.kind = KCR__FILE__KIND_UNIX_SOCKET,
	.name = "Unix socket",
	.match = match,
	.save = save,
	.leave_out = leave_out,
	.collect = unix_queue_collect,
	.open = unix_socket_open,
	.complete = unix_socket_complete,
	.deliver = unix_socket_deliver,
	.conclude = unix_socket_conclude,
};
