// SPDX-License-Identifier: GPL-2.0
/*
 * The requester's side of clients: notifying them of a checkpoint, collecting
 * their answers, passing them the outcome, waiting until they are done.  The
 * tool decides what to do about an answer.  All ioctls run under
 * job->lock; for the rest see client.h.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "client.h"
#include "ioctl.h"
#include "park.h"

#define POLL_MS		20	/* new members and stopped processes do not wake us */
#define PORTION		32	/* clients visited at a time under kcr_clients_lock */

/*
 * Calls visit() for the job's clients in order, until it returns false, under
 * kcr_clients_lock.  That lock is global and is dropped after each portion: a
 * client that leaves the job meanwhile is skipped, one that stays is visited once.
 */
static void visit_clients(struct kcr_job *job,
			  bool (*visit)(struct kcr_client *client, void *data), void *data)
{
	struct kcr_client *client;
	unsigned int nr = 0;
	LIST_HEAD(seen);
	bool more = true;

	lockdep_assert_held(&job->lock);
	spin_lock(&kcr_clients_lock);
	while (more && !list_empty(&job->clients)) {
		client = list_first_entry(&job->clients, struct kcr_client, node);
		list_move_tail(&client->node, &seen);
		more = visit(client, data);
		if (++nr % PORTION == 0) {
			spin_unlock(&kcr_clients_lock);
			cond_resched();
			spin_lock(&kcr_clients_lock);
		}
	}
	list_splice(&seen, &job->clients);
	spin_unlock(&kcr_clients_lock);
}

/* ---- the outcome ------------------------------------------------------------------ */

static void stop_forwarding(struct kcr_client *client, int result)
{
	if (client->forward != KCR_FORWARD_ASKED && client->forward != KCR_FORWARD_TAKEN)
		return;
	client->forward_result = result;
	client->forward = KCR_FORWARD_DONE;
	wake_up_all(&client->wake);
}

static void set_outcome(struct kcr_client *client, u32 outcome, int result)
{
	lockdep_assert_held(&kcr_clients_lock);
	client->outcome = outcome;
	client->result = result;
	if (client->state == KCR_CLIENT_ANSWERED) {
		client->state = KCR_CLIENT_OUTCOME;
		wake_up_all(&client->wake);
	} else {
		client->over = true;
		stop_forwarding(client, -ECANCELED);
	}
}

/* The caller holds a reference to the job. */
static void let_go(struct kcr_client *client)
{
	kcr_job_put(kcr_client_detach(client));
}

struct outcome {
	u32 outcome;
	int result;
};

/*
 * A client that has not answered cannot have been saved: for it the request is
 * cancelled whatever its outcome.
 */
static bool tell_outcome(struct kcr_client *client, void *data)
{
	const struct outcome *told = data;

	switch (client->state) {
	case KCR_CLIENT_TOLD:
		client->state = KCR_CLIENT_IDLE;
		let_go(client);
		break;
	case KCR_CLIENT_RUNNING:
		if (told->outcome == KCR_OUTCOME_CANCELLED)
			set_outcome(client, told->outcome, told->result);
		else
			set_outcome(client, KCR_OUTCOME_CANCELLED, ECANCELED);
		break;
	case KCR_CLIENT_ANSWERED:
		set_outcome(client, told->outcome, told->result);
		break;
	default:
		break;
	}
	return true;
}

void kcr_clients_outcome(struct kcr_job *job, u32 outcome, int result)
{
	struct outcome told = { outcome, result };

	visit_clients(job, tell_outcome, &told);
}

static bool end_request(struct kcr_client *client, void *unused)
{
	let_go(client);
	return true;
}

void kcr_clients_end(struct kcr_job *job)
{
	kcr_clients_outcome(job, KCR_OUTCOME_CANCELLED, ECANCELED);
	visit_clients(job, end_request, NULL);
}

long kcr_ioc_cancel(struct kcr_job *job, void *request)
{
	const struct kcr_cancel *cancel = request;
	struct kcr_member *member;

	if (!cancel->error || cancel->error > INT_MAX)
		return -EINVAL;
	kcr_clients_outcome(job, KCR_OUTCOME_CANCELLED, cancel->error);
	if (cancel->flags & KCR_CANCEL_KILL)
		kcr_for_each_member(member, job) {
			kill_pid(member->pid, SIGKILL, 0);
			cond_resched();
		}
	return 0;
}

/* ---- telling and asking ------------------------------------------------------------ */

/* Reads the notification, at the first call only. */
static int prepare(struct kcr_job *job, const struct kcr_notify *request)
{
	struct kcr_notification *notification;
	long length;

	if (job->notification)
		return 0;
	notification = kzalloc(sizeof(*notification), GFP_KERNEL_ACCOUNT);
	if (!notification)
		return -ENOMEM;
	notification->notice = request->notice;
	length = strncpy_from_user(notification->path, u64_to_user_ptr(request->path),
				   sizeof(notification->path));
	if (length < 0 || length == sizeof(notification->path)) {
		kfree(notification);
		return length < 0 ? length : -ENAMETOOLONG;
	}
	job->notification = notification;
	return 0;
}

static bool end_forward(struct kcr_client *client, void *data)
{
	const struct kcr_notify *request = data;

	if (client->forward == KCR_FORWARD_TAKEN && pid_vnr(client->pid) == request->pid)
		stop_forwarding(client, -request->result);
	return true;
}

/*
 * Notifies members that are clients and were not yet notified.  One that is still
 * busy with an earlier job is left for the next time: *pid names one such.
 */
static void tell_new(struct kcr_job *job, pid_t *pid)
{
	struct kcr_client *client;
	struct kcr_member *member;

	kcr_for_each_member(member, job) {
		if (!kcr_member_is_trusted(member))	/* as after exec: PARK will tell */
			continue;
		spin_lock(&kcr_clients_lock);
		client = kcr_client_find(member->pid);
		if (!client || client->job == job)
			;
		else if (!client->job && client->state == KCR_CLIENT_IDLE)
			kcr_client_attach(client, job, KCR_CLIENT_TOLD);
		else
			*pid = pid_vnr(client->pid);
		spin_unlock(&kcr_clients_lock);
		cond_resched();
	}
}

static bool is_stopped(const struct kcr_client *client)
{
	struct task_struct *task;
	bool stopped = false;

	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	if (task)
		stopped = READ_ONCE(task->signal->flags) & SIGNAL_STOP_STOPPED;
	rcu_read_unlock();
	return stopped;
}

static bool take_forward(struct kcr_client *client, struct kcr_notify *request)
{
	if (client->forward != KCR_FORWARD_ASKED)
		return false;
	client->forward = KCR_FORWARD_TAKEN;
	request->event = KCR_EVENT_FORWARD;
	request->forward_scope = client->forward_scope;
	request->forward_target = client->forward_target;
	return true;
}

/* Has this client an event for the tool? */
static bool take_event(struct kcr_client *client, struct kcr_notify *request)
{
	if (take_forward(client, request))
		return true;
	if (client->reported)
		return false;
	if (client->state == KCR_CLIENT_TOLD || client->state == KCR_CLIENT_RUNNING) {
		request->event = KCR_EVENT_STOPPED;
		client->reported = is_stopped(client);
		return client->reported;
	}
	if (client->state != KCR_CLIENT_ANSWERED || client->answer == KCR_ANSWER_READY)
		return false;
	request->event = client->answer;
	request->result = client->code;
	client->reported = true;
	return true;
}

struct look {
	struct kcr_notify *request;
	pid_t late;		/* a client that has not answered, or 0 */
	struct pid *omitted;	/* a process to leave out, referenced, or NULL */
};

static bool look_at(struct kcr_client *client, void *data)
{
	struct look *look = data;
	struct kcr_notify *request = look->request;

	if (!take_event(client, request)) {
		request->nr_clients++;
		if (client->state != KCR_CLIENT_ANSWERED)
			look->late = pid_vnr(client->pid);
		return true;
	}
	look->late = 0;
	request->pid = pid_vnr(client->pid);
	if (request->event == KCR_EVENT_OMIT) {
		look->omitted = get_pid(client->pid);
		set_outcome(client, KCR_OUTCOME_OMITTED, 0);
		let_go(client);
	}
	return false;
}

/*
 * Checks once: true: an event (or all are ready); false: a client, named in
 * the request, has not answered.
 */
static bool look(struct kcr_job *job, struct kcr_notify *request, struct pid **omitted)
{
	struct look look = { .request = request };

	request->pid = 0;
	request->nr_clients = 0;
	request->event = KCR_EVENT_READY;
	tell_new(job, &look.late);
	visit_clients(job, look_at, &look);
	*omitted = look.omitted;
	if (look.late)
		request->pid = look.late;
	return !look.late;
}

/* Removes the process from the job. */
static void leave_out(struct kcr_job *job, struct pid *pid)
{
	struct kcr_member *member, *next;

	list_for_each_entry_safe(member, next, &job->processes, node)
		if (member->pid == pid)
			kcr_member_free(member);
	put_pid(pid);
}

static int wait_for_event(struct kcr_job *job, struct kcr_notify *request)
{
	unsigned long end = jiffies + msecs_to_jiffies(request->timeout_ms);
	struct pid *omitted = NULL;
	DEFINE_WAIT(wait);
	int ret = 0;

	while (true) {
		kcr_job_sweep(job);
		prepare_to_wait(&job->arrived, &wait, TASK_INTERRUPTIBLE);
		if (look(job, request, &omitted))
			break;
		if (READ_ONCE(job->dead))
			ret = -ECANCELED;
		else if (signal_pending(current))
			ret = -EINTR;
		else if (request->timeout_ms && time_after(jiffies, end))
			ret = -ETIMEDOUT;
		if (ret)
			break;
		schedule_timeout(msecs_to_jiffies(POLL_MS));
	}
	finish_wait(&job->arrived, &wait);
	if (omitted)
		leave_out(job, omitted);
	return ret;
}

long kcr_ioc_notify(struct kcr_job *job, void *request)
{
	struct kcr_notify *notify = request;
	int ret;

	if (notify->result < 0 || notify->result > MAX_ERRNO)
		return -EINVAL;
	ret = prepare(job, notify);
	if (ret)
		return ret;
	if (notify->pid)
		visit_clients(job, end_forward, notify);
	notify->result = 0;
	return wait_for_event(job, notify);
}

/* ---- the end ------------------------------------------------------------------------ */

static bool all_done(struct kcr_job *job)
{
	return !READ_ONCE(job->nr_clients) || READ_ONCE(job->dead);
}

static pid_t first_late(struct kcr_job *job)
{
	struct kcr_client *client;
	pid_t pid = 0;

	spin_lock(&kcr_clients_lock);
	client = list_first_entry_or_null(&job->clients, struct kcr_client, node);
	if (client)
		pid = pid_vnr(client->pid);
	spin_unlock(&kcr_clients_lock);
	return pid;
}

/* Without the lock: a callback may wait for memory that another thread of the owner loads. */
long kcr_ioc_finish(struct kcr_job *job, void *request)
{
	struct kcr_finish *finish = request;
	unsigned long timeout;
	long ret;

	if (task_tgid(current) != job->owner)
		return -EPERM;
	timeout = finish->timeout_ms ? msecs_to_jiffies(finish->timeout_ms) : MAX_SCHEDULE_TIMEOUT;
	ret = wait_event_interruptible_timeout(job->arrived, all_done(job), timeout);
	if (READ_ONCE(job->dead))
		ret = -ECANCELED;
	else if (ret < 0)
		ret = -EINTR;
	else
		ret = ret ? 0 : -ETIMEDOUT;
	spin_lock(&kcr_clients_lock);
	finish->code = job->finish_code;
	finish->failed_pid = job->finish_pid;
	spin_unlock(&kcr_clients_lock);
	if (ret)
		finish->failed_pid = first_late(job);
	return ret;
}
