// SPDX-License-Identifier: GPL-2.0
/*
 * Connections to a listening Unix socket that its program has not accepted yet.  sock_diag
 * lists the inodes of the clients in the order of the queue, none for a client that
 * has closed: what that one has sent cannot be told.
 */
#include "resource/not_accepted.h"

#include <errno.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/unix_diag.h"
#include "resource/unix_socket.h"

/* *what: why one of them cannot be saved, NULL: all can. */
static int look(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u,
		const char **what)
{
	struct unix_state state, client;
	int err = unix_diag(t, probe->st.st_ino, &state);

	*what = NULL;
	not_accepted_clear(&u->not_accepted, &u->n_not_accepted);
	if (!err && state.nr_waiting > state.nr_pending)
		err = -E2BIG;
	for (size_t i = 0; !err && !*what && i < state.nr_pending; i++) {
		ino_t ino = state.pending[i];

		if (!ino || unix_diag(t, ino, &client))
			*what = "with a connection that its peer has closed";
		else if (client.unread)
			*what = "with data in a connection";
		else
			err = not_accepted_add(&u->not_accepted, &u->n_not_accepted,
					       file_table_find_inode(t, probe->st.st_dev, ino),
					       true);
	}
	return err;
}

int unix_waiting_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u)
{
	for (int patience = 0;; patience++) {
		const char *what;
		int err = look(t, probe, u, &what);

		if (err)
			return file_save_error(probe, err, "cannot list its connections");
		if (!what)
			return 0;
		if (!not_accepted_wait(t, patience))
			return not_accepted_refuse(t, probe, "a Unix socket", what);
	}
}

/* ---- rebuild ------------------------------------------------------------------------- */

/* A client that has nothing to say and ends at once. */
static int connect_nobody(const struct rebuild *r, const Kcr__File *listener)
{
	int fd = socket(AF_UNIX, listener->unix_socket->type | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	err = unix_name_connect(r, listener, fd);
	close(fd);
	return err;
}

struct client_step {
	const Kcr__File *listener;
	int fd;
};

static int connect_step(const struct rebuild *r, void *arg)
{
	const struct client_step *step = arg;

	return unix_name_connect(r, step->listener, step->fd);
}

/* Who has connected is not known before it is accepted: a process that has it. */
static int connect_client(const struct rebuild *r, const Kcr__File *listener,
			  const Kcr__File *client)
{
	const Kcr__Process *p = rebuild_first_owner(r, client->id);
	struct client_step step = { .listener = listener, .fd = r->file_fd[client->id - 1] };
	Kcr__PeerCredentials who = KCR__PEER_CREDENTIALS__INIT;
	pid_t as;
	int err;

	if (p && p->credentials) {
		who.pid = p->pid;
		who.uid = p->credentials->euid;
		who.gid = p->credentials->egid;
		who.n_group = p->credentials->n_group;
		who.group = p->credentials->group;
	}
	err = unix_peer_act(r, who.pid ? &who : NULL, connect_step, &step, &as);
	if (!err)
		unix_socket_shut(client, step.fd);
	return err;
}

int unix_waiting_rebuild(struct rebuild *r, const Kcr__File *listener)
{
	const Kcr__UnixSocket *u = listener->unix_socket;
	int err = 0;

	for (size_t i = 0; i < u->n_not_accepted && !err; i++) {
		const Kcr__File *client = context_file(r->context, u->not_accepted[i]->file_id);

		if (!client)
			err = connect_nobody(r, listener);
		else if (client->kind_case == KCR__FILE__KIND_UNIX_SOCKET &&
			 client->unix_socket->pending && r->file_fd[client->id - 1] >= 0)
			err = connect_client(r, listener, client);
	}
	return err ? rebuild_error(listener, err, "a client cannot connect to it") : 0;
}
