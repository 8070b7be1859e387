// SPDX-License-Identifier: GPL-2.0
/*
 * Who is at the other end of a Unix socket (SO_PEERCRED, SO_PEERGROUPS): the process that
 * made the pair, connected or called listen(2), with the IDs that it had then.  The kernel
 * notes who makes these calls, so a restart has them made by a process with that PID
 * and those IDs, which shares our descriptors and ends at once: the number stays.  What
 * cannot be had (another user's IDs, a PID in use) is the caller's, as a warning says.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"

#define MOST_GROUPS	65536		/* the kernel's limit */

/* ---- save ------------------------------------------------------------------- */

static int save_groups(const struct file_probe *probe, Kcr__PeerCredentials *peer)
{
	socklen_t length = 0;

	if (!getsockopt(probe->fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) || errno != ERANGE ||
	    length > MOST_GROUPS * sizeof(gid_t))
		return 0;
	peer->group = malloc(length);
	if (!peer->group)
		return report_errno(-ENOMEM, "saving a socket");
	if (!getsockopt(probe->fd, SOL_SOCKET, SO_PEERGROUPS, peer->group, &length))
		peer->n_group = length / sizeof(gid_t);
	return 0;
}

int unix_peer_save(const struct file_probe *probe, Kcr__UnixSocket *u)
{
	struct ucred peer = {};
	socklen_t length = sizeof(peer);

	if (getsockopt(probe->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    peer.uid == (uid_t)-1)
		return 0;		/* it has none */
	u->peer = malloc(sizeof(*u->peer));
	if (!u->peer)
		return report_errno(-ENOMEM, "saving a socket");
	kcr__peer_credentials__init(u->peer);
	u->peer->pid = peer.pid;
	u->peer->uid = peer.uid;
	u->peer->gid = peer.gid;
	return save_groups(probe, u->peer);
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Any process's, as all of an ordinary user's image have those of its owner. */
static const Kcr__Credentials *owner_of(const struct rebuild *r)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (r->context->process[i]->credentials)
			return r->context->process[i]->credentials;
	return NULL;
}

/*
 * In the process that stands for `who`.  An ordinary user's image has only its own IDs: also the real
 * ones, by which the kernel says who has sent a message.
 */
static int act(const struct rebuild *r, const Kcr__PeerCredentials *who, unix_step step, void *arg)
{
	Kcr__Credentials c = KCR__CREDENTIALS__INIT;
	int err;

	c.euid = c.fsuid = who->uid;
	c.egid = c.fsgid = who->gid;
	c.n_group = who->n_group;
	c.group = who->group;
	err = identity_may_be_anyone() ? identity_enter(&c) : identity_drop(owner_of(r));
	return err ?: step(r, arg);
}

/* The new process ends in _exit(), and must have ended before the job does, which kills it. */
static pid_t fork_as(int job, const struct kcr_info *info, pid_t number)
{
	bool clones = info->features & KCR_FEATURE_CLONE;
	pid_t pid = device_fork(job, clones, number, CLONE_FILES, 0);

	if (pid < 0 && number)
		pid = device_fork(job, clones, 0, CLONE_FILES, 0);
	return pid;
}

static pid_t act_as(const struct rebuild *r, const Kcr__PeerCredentials *who, unix_step step,
		    void *arg)
{
	bool raised = identity_raise(true);
	struct kcr_info info;
	int job = device_open(&info), status = 0;
	pid_t pid;

	identity_lower(raised);
	if (job < 0)
		return job;
	pid = fork_as(job, &info, r->restore_ids ? who->pid : 0);
	if (!pid)
		_exit(-act(r, who, step, arg) & 0xff);
	if (pid > 0)
		while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
			;
	close(job);
	return pid > 0 && status ? WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD : pid;
}

int unix_peer_act(const struct rebuild *r, const Kcr__PeerCredentials *who, unix_step step,
		  void *arg, pid_t *as)
{
	static const Kcr__PeerCredentials anyone = KCR__PEER_CREDENTIALS__INIT;
	bool owner = identity_is_owner();
	pid_t pid = who || owner ? act_as(r, who ?: &anyone, step, arg) : -ESRCH;

	*as = pid > 0 ? pid : getpid();
	if (pid > 0)
		return 0;
	if (owner)
		return report_message() ? pid : report_fail(pid, "cannot act as the image's owner");
	if (who)
		report_clear();
	return step(r, arg);
}

void unix_peer_compare(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__PeerCredentials *saved = file->unix_socket->peer;
	static bool warned;
	struct ucred now = {};
	socklen_t length = sizeof(now);

	if (!saved || file->unix_socket->pending || r->borrowed[file->id - 1] ||
	    getsockopt(r->file_fd[file->id - 1], SOL_SOCKET, SO_PEERCRED, &now, &length))
		return;
	if ((now.uid != saved->uid || now.gid != saved->gid) && !warned) {
		report_warn("%s: its peer was user %u, group %u, and is user %u, group %u now "
			    "(SO_PEERCRED); others may be, too", file->description, saved->uid,
			    saved->gid, now.uid, now.gid);
		warned = true;
	}
	if (now.pid != saved->pid && saved->pid)
		report_verbose("%s: its peer was process %d, and is %d now (SO_PEERCRED)",
			       file->description, saved->pid, now.pid);
}
