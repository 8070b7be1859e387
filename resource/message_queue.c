// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX message queues (mq_overview(7)): limits, owner, mode and the messages.
 * Messages can only be read by receiving them: they are sent again at once, in
 * the same order, while the programs are stopped.  A queue that none of the saved
 * programs reads belongs to others: it is left alone, and a restart does not
 * change its contents.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/identity.h"

#define MQUEUE_MAGIC	0x19800202	/* private to the kernel's ipc/mqueue.c */
#define WAITING_MAX	256		/* messages of others that arrive meanwhile */

static bool match(const struct file_probe *probe)
{
	return probe->fs.f_type == MQUEUE_MAGIC && S_ISREG(probe->st.st_mode);
}

/* ---- save ------------------------------------------------------------------- */

/* Its name for mq_open(3), "/name". */
static char *name_of(const struct file_probe *probe)
{
	char *path = probe_path(probe, !probe->st.st_nlink);
	char *slash = path ? strrchr(path, '/') : NULL;
	char *name = slash ? file_string(slash) : path;

	if (slash)
		free(path);
	return name;
}

/* Sending to the empty queue would trigger a notification that was asked for. */
static bool has_notification(int fd)
{
	char text[128] = "";
	const char *pid;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	pid = strstr(text, "NOTIFY_PID:");
	return pid && atoi(pid + strlen("NOTIFY_PID:"));
}

/* Receives the first message and appends it to the image's queue. */
static int take_message(int fd, size_t size, Kcr__MessageQueue *queue)
{
	Kcr__Message *message = malloc(sizeof(*message));
	ssize_t length;
	int err;

	if (!message)
		return -ENOMEM;
	kcr__message__init(message);
	message->data.data = malloc(size);
	if (!message->data.data) {
		free(message);
		return -ENOMEM;
	}
	length = mq_receive(fd, (char *)message->data.data, size, &message->priority);
	if (length < 0) {
		err = -errno;
		kcr__message__free_unpacked(message, NULL);
		return err;
	}
	message->data.len = length;
	queue->message[queue->n_message++] = message;
	return 0;
}

/* *next: the first message not yet sent. */
static int send_from(int fd, const Kcr__MessageQueue *queue, size_t *next)
{
	for (; *next < queue->n_message; ++*next) {
		const Kcr__Message *m = queue->message[*next];

		if (mq_send(fd, (const char *)m->data.data, m->data.len, m->priority))
			return -errno;
	}
	return 0;
}

/* In a separate process, which holds only the queue and waits for its readers. */
static void wait_and_send(int fd, const Kcr__MessageQueue *queue, size_t next)
{
	struct mq_attr waits = {};
	sigset_t none;

	setsid();
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd > 0)
		close_range(0, fd - 1, 0);
	close_range(fd + 1, ~0u, 0);
	mq_setattr(fd, &waits, NULL);
	send_from(fd, queue, &next);
	_exit(0);
}

static int leave_to_child(int fd, const Kcr__MessageQueue *queue, size_t next)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		return -errno;
	if (!child) {
		child = fork();	/* orphaned: it may take long */
		if (!child)
			wait_and_send(fd, queue, next);
		_exit(child < 0 ? errno : 0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return -WEXITSTATUS(status);
}

/*
 * A sender outside that was waiting for room may have got it.  The rest is sent when
 * the readers make room again: perhaps in another order, but all of it.
 */
static int send_back(int fd, const Kcr__MessageQueue *queue)
{
	size_t next = 0;
	int err = send_from(fd, queue, &next);

	return err == -EAGAIN ? leave_to_child(fd, queue, next) : err;
}

/*
 * Receives all messages: for each one received, the kernel lets a sender outside that
 * waits for room add another one.
 */
static int look_at_messages(int fd, size_t count, Kcr__MessageQueue *queue)
{
	int err = 0, sent;

	count += WAITING_MAX;
	queue->message = calloc(count, sizeof(*queue->message));
	if (!queue->message)
		return -ENOMEM;
	while (!err && queue->n_message < count)
		err = take_message(fd, queue->message_size, queue);
	sent = send_back(fd, queue);
	return err && err != -EAGAIN ? err : sent;
}

/* Uses an open file description of our own that can read and does not block. */
static int save_messages(struct file_table *t, const struct file_probe *probe, size_t count,
			 Kcr__MessageQueue *queue)
{
	int fd = proc_fd_reopen(probe->fd, O_RDWR | O_NONBLOCK), err = 0;

	if (fd < 0)
		return file_save_error(probe, fd, "cannot read its messages");
	if (has_notification(fd)) {
		close(fd);
		return file_unsupported(t, "a message queue with a notification (mq_notify)");
	}
	if (count && !file_table_is_dry(t) && file_table_is_read(t, &probe->st)) {
		err = look_at_messages(fd, count, queue);
		if (err)
			err = file_save_error(probe, err, "cannot save its messages");
	}
	close(fd);
	return err;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__MessageQueue *queue = file_new_kind(file, KCR__FILE__KIND_MESSAGE_QUEUE,
						 sizeof(*queue));
	struct mq_attr attr;

	if (!queue)
		return -ENOMEM;
	queue->name = name_of(probe);
	if (!queue->name)
		return -ENOMEM;
	queue->same_as = file_table_first_with_inode(t, probe, file, NULL);
	if (mq_getattr(probe->fd, &attr))
		return file_save_error(probe, -errno, "cannot get its limits");
	queue->max_messages = attr.mq_maxmsg;
	queue->message_size = attr.mq_msgsize;
	queue->mode = probe->st.st_mode & 07777;
	queue->has_uid = queue->has_gid = true;
	queue->uid = probe->st.st_uid;
	queue->gid = probe->st.st_gid;
	queue->unlinked = !probe->st.st_nlink;
	if (queue->same_as != file->id)
		return 0;
	return save_messages(t, probe, attr.mq_curmsgs, queue);
}

/* ---- rebuild ---------------------------------------------------------------- */

/* Can one of the saved programs receive from it, or else send to it? */
static bool is_used(const struct rebuild *r, uint32_t first, bool sends)
{
	unsigned int other = sends ? O_RDONLY : O_WRONLY;

	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *file = r->context->file[i];

		if (file->kind_case == KCR__FILE__KIND_MESSAGE_QUEUE &&
		    file->message_queue->same_as == first &&
		    (file->flags & O_ACCMODE) != other)
			return true;
	}
	return false;
}

static bool same_message(const Kcr__Message *a, const Kcr__Message *b)
{
	return a->priority == b->priority && a->data.len == b->data.len &&
	       (!a->data.len || !memcmp(a->data.data, b->data.data, a->data.len));
}

/* Has `all` the messages of `some`, in the same order, whatever is between them? */
static bool has_all(const Kcr__MessageQueue *all, const Kcr__MessageQueue *some)
{
	size_t found = 0;

	for (size_t i = 0; i < all->n_message && found < some->n_message; i++)
		found += same_message(all->message[i], some->message[found]);
	return found == some->n_message;
}

/*
 * What the program had not read is to be there, and so is what was sent since the checkpoint, if the
 * program has read nothing since then and cannot have sent it: that it will do again.
 */
static int put_back(const struct rebuild *r, const Kcr__File *file, int fd,
		    const struct mq_attr *attr)
{
	const Kcr__MessageQueue *saved = file->message_queue;
	Kcr__MessageQueue now = KCR__MESSAGE_QUEUE__INIT;
	size_t count = attr->mq_curmsgs + WAITING_MAX;
	bool kept;
	int err = 0;

	now.message = calloc(count, sizeof(*now.message));
	if (!now.message)
		return -ENOMEM;
	while (!err && now.n_message < count)
		err = take_message(fd, attr->mq_msgsize, &now);
	kept = (err && err != -EAGAIN) ||
	       (!is_used(r, file->id, true) && has_all(&now, saved));
	if (!kept && !has_all(saved, &now))
		report_warn("%s: what was sent since the checkpoint is replaced by what was there then",
			    file->description);
	err = send_back(fd, kept ? &now : saved) ?: err == -EAGAIN ? 0 : err;
	for (size_t i = 0; i < now.n_message; i++)
		kcr__message__free_unpacked(now.message[i], NULL);
	free(now.message);
	return err;
}

/*
 * With privileges queues may be larger than users may create them: root makes it, and
 * nobody else can open it before it is given to its owner.
 */
static int make_new(const char *name, const Kcr__MessageQueue *queue, struct mq_attr *attr)
{
	const int flags = O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK;
	int fd = mq_open(name, flags, 0600, attr), err = -errno;
	bool raised;

	if (fd < 0 && err == -EINVAL) {
		raised = identity_raise(false);
		fd = raised ? mq_open(name, flags, 0600, attr) : -1;
		err = raised ? -errno : err;
		identity_lower(raised);
		if (fd >= 0 && queue->has_uid && queue->has_gid)
			rebuild_give(fd, queue->uid, queue->gid, queue->name);
	}
	return fd < 0 ? err : fd;
}

/* Are those who may use it the same as at the checkpoint? */
static bool is_unchanged(int fd, const Kcr__MessageQueue *queue)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == queue->uid && st.st_gid == queue->gid &&
	       (st.st_mode & 0777) == (queue->mode & 0777);
}

/* With the caller's own rights only if it is still open to the same users. */
static int open_old(const Kcr__MessageQueue *queue)
{
	int fd = mq_open(queue->name, O_RDWR | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (!identity_is_guarding() || is_unchanged(fd, queue))
		return fd;
	close(fd);
	return -EACCES;
}

/* Uses an existing queue of this name as it is, or creates a new one. */
static int open_or_make(const Kcr__File *file, bool *fresh)
{
	const Kcr__MessageQueue *queue = file->message_queue;
	struct mq_attr attr = {
		.mq_maxmsg = queue->max_messages, .mq_msgsize = queue->message_size,
	};
	char name[64];
	uint64_t number;	/* others may take names that they can guess */
	int fd;

	*fresh = true;
	if (queue->unlinked) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(name, sizeof(name), "/kcr.%016" PRIx64, number);
		fd = make_new(name, queue, &attr);
		if (fd >= 0)
			mq_unlink(name);
	} else {
		fd = make_new(queue->name, queue, &attr);
		*fresh = fd >= 0;
		if (fd == -EEXIST)
			fd = open_old(queue);
	}
	return fd;
}

/*
 * Gives a new queue its old owner and mode, as far as its maker may; the latter by root, as
 * root may have made it.
 */
static int dress(const struct rebuild *r, int fd, const Kcr__MessageQueue *queue)
{
	bool owned = queue->has_uid && queue->has_gid;
	struct stat st;
	int err = fstat(fd, &st) ? -errno : 0;

	if (!err && owned && (st.st_uid != queue->uid || st.st_gid != queue->gid))
		err = rebuild_own(r, fd, queue->uid, queue->gid, queue->name);
	if (!err)
		err = rebuild_set_mode(fd, queue->mode & 0777);
	if (err && !queue->unlinked)
		mq_unlink(queue->name);
	return err;
}

static int fill(struct rebuild *r, const Kcr__File *file, int fd, bool fresh)
{
	const Kcr__MessageQueue *queue = file->message_queue;
	struct mq_attr attr;
	int err;

	if (mq_getattr(fd, &attr))
		return rebuild_error(file, -errno, "mq_getattr");
	if (attr.mq_maxmsg < queue->max_messages || attr.mq_msgsize != queue->message_size)
		return rebuild_error(file, -EEXIST, "a queue of this name has other limits");
	err = fresh ? dress(r, fd, queue) : 0;
	if (err)
		return rebuild_error(file, err, "cannot set its owner and mode");
	if (!fresh && !is_used(r, file->id, false))
		return 0;
	err = put_back(r, file, fd, &attr);
	return err ? rebuild_error(file, err, "cannot send its messages") : 0;
}

static int make(struct rebuild *r, const Kcr__File *file)
{
	bool fresh;
	int fd = open_or_make(file, &fresh);
	int err;

	if (fd < 0)
		return rebuild_error(file, fd, "mq_open");
	err = fill(r, file, fd, fresh);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put_content(r, file->id, fd);
}

static int open_queue(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__File *first = context_file(r->context, file->message_queue->same_as);
	int fd, err;

	if (!first || first->kind_case != KCR__FILE__KIND_MESSAGE_QUEUE)
		return rebuild_error(file, -EINVAL, "its messages are those of no file");
	if (first == file) {
		err = make(r, file);
		if (err)
			return err;
	}
	if (r->content_fd[first->id - 1] < 0)
		return rebuild_error(file, -EINVAL, "its messages come too late");
	fd = proc_fd_reopen(r->content_fd[first->id - 1],
			    rebuild_open_flags(file) & ~O_NOFOLLOW);
	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_message_queue = {
	.kind = KCR__FILE__KIND_MESSAGE_QUEUE,
	.name = "message queue",
	.match = match,
	.save = save,
	.open = open_queue,
};
