// SPDX-License-Identifier: GPL-2.0
/*
 * System V message queues: their limits, owner and messages, which the kernel copies for a
 * checkpoint without taking them from the queue (MSG_COPY of msgrcv(2)).
 */
#include "resource/sysv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>

#include "proc/status.h"
#include "report/report.h"

/* ---- save --------------------------------------------------------------------- */

static Kcr__SysvMessage *new_message(const struct msgbuf *from, size_t length)
{
	Kcr__SysvMessage *message = malloc(sizeof(*message));

	if (!message)
		return NULL;
	kcr__sysv_message__init(message);
	message->type = from->mtype;
	message->text.data = malloc(length ?: 1);
	if (!message->text.data) {
		free(message);
		return NULL;
	}
	memcpy(message->text.data, from->mtext, length);
	message->text.len = length;
	return message;
}

/* EINVAL: it has been removed, or what root has lowered since is too low for it. */
static int not_copied(int id, int err)
{
	struct msqid_ds status;

	return err == -EINVAL && !msgctl(id, IPC_STAT, &status) ? -EMSGSIZE : err;
}

/* 1: there is no more. */
static int copy_message(int id, struct msgbuf *buffer, size_t size, Kcr__SysvQueue *queue)
{
	ssize_t length = msgrcv(id, buffer, size, (long)queue->n_message,
				MSG_COPY | IPC_NOWAIT | MSG_NOERROR);
	Kcr__SysvMessage **larger;

	if (length < 0)
		return errno == ENOMSG ? 1 : not_copied(id, -errno);
	larger = realloc(queue->message, (queue->n_message + 1) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	queue->message = larger;
	larger[queue->n_message] = new_message(buffer, length);
	if (!larger[queue->n_message])
		return -ENOMEM;
	queue->n_message++;
	return 0;
}

/* Others may send and receive meanwhile: no message is longer than the queue is or may be. */
static int copy_messages(int id, size_t bytes, Kcr__SysvQueue *queue)
{
	size_t size = bytes > queue->max_bytes ? bytes : queue->max_bytes;
	struct msgbuf *buffer = malloc(sizeof(*buffer) + size);
	int err = buffer ? 0 : -ENOMEM;

	while (!err)
		err = copy_message(id, buffer, size, queue);
	free(buffer);
	return err > 0 ? 0 : err;
}

static int keep(Kcr__Process *p, Kcr__SysvQueue *queue)
{
	Kcr__SysvQueue **larger = realloc(p->sysv_queue, (p->n_sysv_queue + 1) * sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	p->sysv_queue = larger;
	p->sysv_queue[p->n_sysv_queue++] = queue;
	return 0;
}

static int fill(Kcr__SysvQueue *queue, const struct sysv_line *line, bool used)
{
	struct msqid_ds status;

	queue->identity = sysv_identity(line, used);
	if (!queue->identity)
		return -ENOMEM;
	if (msgctl(line->id, IPC_STAT, &status))
		return -errno;
	queue->max_bytes = status.msg_qbytes;
	return status.msg_qnum ? copy_messages(line->id, status.__msg_cbytes, queue) : 0;
}

static int save(Kcr__Process *p, const struct sysv_line *line, bool used)
{
	Kcr__SysvQueue *queue = malloc(sizeof(*queue));
	int err;

	if (!queue)
		return -ENOMEM;
	kcr__sysv_queue__init(queue);
	err = fill(queue, line, used) ?: keep(p, queue);
	if (err)
		kcr__sysv_queue__free_unpacked(queue, NULL);
	return err;
}

/* Of other PID namespaces, whose processes have no number here, likewise. */
static bool others_use(pid_t sender, pid_t receiver, bool operated)
{
	return stat_lives(sender) || stat_lives(receiver) || (operated && !sender && !receiver);
}

static int not_saved(const struct sysv_line *line, int err)
{
	if (err == -ENOSYS)
		return report_fail(-EOPNOTSUPP, "System V message queue %d has messages, which this "
				   "kernel does not show (CONFIG_CHECKPOINT_RESTORE)", line->id);
	if (err == -EMSGSIZE)
		return report_fail(-EOPNOTSUPP, "System V message queue %d has messages that are longer "
				   "than sysctl kernel.msgmax permits by now", line->id);
	return report_errno(err, "System V message queue %d", line->id);
}

/*
 * One that the process may only send to belongs to those who read it: a list shows root what the
 * process may not see.
 */
static int describe(struct sysv_users *users, const struct sysv_line *line)
{
	Kcr__Process *p = sysv_user(users, line->sender) ?: sysv_user(users, line->receiver);
	bool used = p != NULL;
	int err;

	if (!p && !others_use(line->sender, line->receiver, line->operated))
		p = sysv_maker(users, line);
	err = p && sysv_permits(p->credentials, line, 4) ? save(p, line, used) : 0;
	if (!err || err == -EACCES || err == -EIDRM || err == -EINVAL)
		return 0;
	return used ? not_saved(line, err) : 0;
}

int sysv_queues_describe(struct sysv_users *users)
{
	return sysv_each(users, "sysvipc/msg", describe);
}

/* ---- rebuild ------------------------------------------------------------------ */

static int look(int id, struct ipc_perm *permissions, uint64_t *length)
{
	struct msqid_ds status;

	if (msgctl(id, IPC_STAT, &status))
		return -errno;
	*permissions = status.msg_perm;
	*length = 0;
	return 0;
}

static int get(key_t key, uint64_t length, int flags)
{
	int id = msgget(key, flags);

	(void)length;
	return id < 0 ? -errno : id;
}

/* With its limit. */
static int set_permissions(int id, const struct ipc_perm *permissions)
{
	struct msqid_ds status;

	if (msgctl(id, IPC_STAT, &status))
		return -errno;
	status.msg_perm = *permissions;
	return msgctl(id, IPC_SET, &status) ? -errno : 0;
}

static int remove_queue(int id)
{
	return msgctl(id, IPC_RMID, NULL) ? -errno : 0;
}

const struct sysv_kind sysv_queues = {
	.name = "System V message queue",
	.next_id = "sys/kernel/msg_next_id",
	.limits = "sysctl kernel.msgmni",
	.look = look,
	.get = get,
	.set = set_permissions,
	.remove = remove_queue,
};

/* Only privileged processes may enlarge a queue beyond the system's limit. */
static int set_limit(const Kcr__SysvQueue *queue, bool larger_only)
{
	int id = queue->identity->id;
	struct msqid_ds status;

	if (msgctl(id, IPC_STAT, &status))
		return -errno;
	if (larger_only ? status.msg_qbytes >= queue->max_bytes : status.msg_qbytes == queue->max_bytes)
		return 0;
	status.msg_qbytes = queue->max_bytes;
	if (!msgctl(id, IPC_SET, &status))
		return 0;
	return errno == EPERM ? report_fail(-EPERM, "System V message queue %d may have %llu bytes, "
					    "more than sysctl kernel.msgmnb permits here", id,
					    (unsigned long long)queue->max_bytes) : -errno;
}

static int send_message(int id, const Kcr__SysvMessage *message)
{
	struct msgbuf *buffer = malloc(sizeof(*buffer) + message->text.len);
	int err = -ENOMEM;

	if (!buffer)
		return err;
	buffer->mtype = message->type;
	memcpy(buffer->mtext, message->text.data, message->text.len);
	err = msgsnd(id, buffer, message->text.len, IPC_NOWAIT) ? -errno : 0;
	free(buffer);
	if (err == -EINVAL)
		return report_fail(err, "System V message queue %d: a message of %zu bytes is longer than "
				   "sysctl kernel.msgmax permits here", id, message->text.len);
	return err;
}

static int send_all(const Kcr__SysvQueue *queue)
{
	int err = 0;

	for (size_t i = 0; !err && i < queue->n_message; i++)
		err = send_message(queue->identity->id, queue->message[i]);
	return err;
}

/* Are there these messages, and no others?  With the same function that saved them. */
static bool has_messages(const Kcr__SysvQueue *saved, size_t bytes)
{
	Kcr__SysvQueue now = KCR__SYSV_QUEUE__INIT;
	bool same;

	now.max_bytes = saved->max_bytes;
	same = !copy_messages(saved->identity->id, bytes, &now) && now.n_message == saved->n_message;
	for (size_t i = 0; same && i < now.n_message; i++) {
		const Kcr__SysvMessage *a = now.message[i], *b = saved->message[i];

		same = a->type == b->type && a->text.len == b->text.len &&
		       !memcmp(a->text.data, b->text.data, a->text.len);
	}
	for (size_t i = 0; i < now.n_message; i++)
		kcr__sysv_message__free_unpacked(now.message[i], NULL);
	free(now.message);
	return same;
}

static void drain(const Kcr__SysvQueue *queue)
{
	struct msgbuf *buffer = malloc(sizeof(*buffer) + queue->max_bytes);

	while (buffer && msgrcv(queue->identity->id, buffer, queue->max_bytes, 0,
				IPC_NOWAIT | MSG_NOERROR) >= 0)
		;
	free(buffer);
}

/* Why the messages of a queue that is still there cannot become the saved ones; NULL: they can. */
static const char *why_left(const Kcr__Process *p, const Kcr__SysvQueue *queue,
			    const struct msqid_ds *now)
{
	const struct sysv_line line = {
		.mode = now->msg_perm.mode, .uid = now->msg_perm.uid, .gid = now->msg_perm.gid,
		.cuid = now->msg_perm.cuid, .cgid = now->msg_perm.cgid,
	};
	size_t bytes = 0;

	for (size_t i = 0; i < queue->n_message; i++)
		bytes += queue->message[i]->text.len;
	if (others_use(now->msg_lspid, now->msg_lrpid, now->msg_stime || now->msg_rtime))
		return "another program uses it";
	if (!queue->identity->used)
		return "it may be another program's";
	if (!sysv_permits(p->credentials, &line, 4) || !sysv_permits(p->credentials, &line, 2))
		return "the program may not change them";
	return bytes > now->msg_qbytes ? "it has no room for those that were saved" : NULL;
}

static int fill_old(const Kcr__Process *p, const Kcr__SysvQueue *queue)
{
	int id = queue->identity->id;
	struct msqid_ds now;
	const char *why;

	if (msgctl(id, IPC_STAT, &now))
		return -errno;
	if (has_messages(queue, now.__msg_cbytes))
		return 0;
	why = why_left(p, queue, &now);
	if (!why) {
		drain(queue);
		return send_all(queue);
	}
	report_warn("the messages of System V queue %d have changed since the checkpoint, and are left "
		    "as they are, as %s", id, why);
	return 0;
}

static int fill_new(const Kcr__SysvQueue *queue)
{
	return set_limit(queue, true) ?: send_all(queue) ?: set_limit(queue, false) ?:
	       sysv_give(&sysv_queues, queue->identity);
}

int sysv_queues_make(const Kcr__Process *p)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->n_sysv_queue; i++)
		err = sysv_forgive(p->sysv_queue[i]->identity,
				   sysv_get(&sysv_queues, p->sysv_queue[i]->identity, 0));
	return err;
}

/* By the process that they are saved with, so that it is the one that has used them last. */
static int prepare(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	(void)r;
	for (size_t i = 0; !err && i < p->n_sysv_queue; i++) {
		const Kcr__SysvQueue *queue = p->sysv_queue[i];
		int id = queue->identity->id;

		if (!sysv_is_known(&sysv_queues, id))
			continue;
		err = sysv_is_made(&sysv_queues, id) ? fill_new(queue) : fill_old(p, queue);
		if (err)
			report_errno(err, "System V message queue %d cannot be restored", id);
		else
			sysv_renew(&sysv_queues, id);
	}
	return err;
}

const struct attribute attribute_sysv_queues = {
	.name = "System V message queues",
	.prepare = prepare,
};
