// SPDX-License-Identifier: GPL-2.0
/*
 * PARK and RELEASE: all threads of all members come to rest, or none.
 *
 * PARK takes a census again and again: every new thread gets a task
 * work (kmod/parked.c), until a census finds all of them at rest.  That one
 * is final: a thread at rest stays at rest, a new thread can only be created by one
 * that runs, and it is at the end of the lists before its creator rests.  So a census
 * may drop job->list_lock, and reschedule, after each portion of threads.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/rculist.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "client.h"
#include "compat/task.h"
#include "ioctl.h"
#include "park.h"
#include "policy.h"

#define DEFAULT_TIMEOUT_MS	10000
#define STOP_POLL_MS		10	/* how often to check for group stops */
#define QUICK_POLLS		50	/* of 100 us, then of 2 ms */
#define PORTION			32	/* threads visited at a time under the lock */

struct census {
	unsigned int busy;		/* threads not at rest */
	bool poll;			/* … some of which will not wake us */
	struct kcr_member *culprit;	/* a member with a busy thread */
};

static void count_busy(struct census *census, struct kcr_member *member, bool poll)
{
	census->busy++;
	census->poll |= poll;
	if (!census->culprit)
		census->culprit = member;
}

/* An exiting thread still writes to memory (clear_child_tid, robust futexes). */
static void count_exiting(struct census *census, struct kcr_member *member,
			  struct task_struct *task)
{
	if (!READ_ONCE(task->exit_state))
		count_busy(census, member, true);
}

static void count_known(struct census *census, struct kcr_member *member,
			struct kcr_parked *parked)
{
	kcr_parked_check_stopped(parked);
	switch (parked->state) {
	case KCR_QUEUED:
		count_busy(census, member, false);
		break;
	case KCR_RETRY:
		kcr_parked_retry(parked);
		count_busy(census, member, true);
		break;
	case KCR_GONE:
		count_exiting(census, member, parked->task);
		break;
	case KCR_EXECED:
		count_busy(census, member, false);
		break;
	case KCR_ARRIVED:
	case KCR_STOPPED:
		break;
	}
}

static int count_thread(struct census *census, struct kcr_member *member,
			struct task_struct *task)
{
	struct kcr_parked *parked = kcr_parked_find(member->job, task);
	int ret = 0;

	if (task->flags & KCR_PF_WORKER)
		return 0;
	if (!parked && task->flags & PF_EXITING) {
		count_exiting(census, member, task);
		return 0;
	}
	if (!parked) {
		/* In a frozen cgroup it would spin instead of sleeping. */
		if (READ_ONCE(task->jobctl) & JOBCTL_TRAP_FREEZE)
			ret = -EBUSY;
		else
			ret = kcr_parked_start(member, task, TWA_SIGNAL);
		if (ret && ret != -ESRCH) {
			count_busy(census, member, false);
			return ret;
		}
		parked = kcr_parked_find(member->job, task);
	}
	count_known(census, member, parked);
	return 0;
}

/* The thread after this one in the member's list, for NULL the first.  RCU read lock held. */
static struct task_struct *thread_after(const struct kcr_member *member, struct task_struct *task)
{
	struct list_head *threads = &member->watch.process->thread_head;

	return list_next_or_null_rcu(threads, task ? &task->thread_node : threads,
				     struct task_struct, thread_node);
}

/*
 * The next portion of the member's threads, from the one after *last on.  1: there may
 * be more after *last, which is referenced then; 0: there are no more; -errno.
 */
static int count_portion(struct census *census, struct kcr_member *member,
			 struct task_struct **last)
{
	struct task_struct *task = *last, *next;
	int left = PORTION, ret;

	/* It has left the list: its successor is not known any more. */
	if (task && !pid_alive(task)) {
		count_busy(census, member, true);
		return 0;
	}
	for (; left && (next = thread_after(member, task)); task = next, left--) {
		ret = count_thread(census, member, next);
		if (ret)
			return ret;
	}
	if (left)
		return 0;
	get_task_struct(task);
	*last = task;
	return 1;
}

static int count_member(struct census *census, struct kcr_member *member)
{
	struct task_struct *last = NULL, *before;
	int ret;

	do {
		before = last;
		spin_lock(&member->job->list_lock);
		rcu_read_lock();
		ret = count_portion(census, member, &last);
		rcu_read_unlock();
		spin_unlock(&member->job->list_lock);
		if (before)
			put_task_struct(before);
		cond_resched();
	} while (ret > 0);
	return ret;
}

static int take_census(struct kcr_job *job, struct census *census)
{
	struct kcr_member *member;
	int ret;

	memset(census, 0, sizeof(*census));
	kcr_for_each_member(member, job) {
		ret = count_member(census, member);
		if (ret)
			return ret;
	}
	spin_lock(&job->list_lock);
	ret = job->fork_error ?: (job->exec_seen ? -EAGAIN : 0);
	spin_unlock(&job->list_lock);
	return ret;
}

static bool may_go_on(struct kcr_job *job)
{
	return !READ_ONCE(job->nr_queued) || READ_ONCE(job->exec_seen) || READ_ONCE(job->dead);
}

static int park_members(struct kcr_job *job, unsigned int timeout_ms, struct kcr_member **culprit)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	struct census census;
	int polls = 0, ret;

	while (true) {
		ret = take_census(job, &census);
		*culprit = census.culprit;
		if (ret || !census.busy)
			return ret;
		if (READ_ONCE(job->dead))
			return -ECANCELED;
		if (signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, deadline))
			return -EBUSY;
		if (!census.poll)
			wait_event_interruptible_timeout(job->arrived, may_go_on(job),
							 msecs_to_jiffies(STOP_POLL_MS));
		else if (polls++ < QUICK_POLLS)
			usleep_range(100, 150);
		else
			usleep_range(2000, 3000);
	}
}

static bool has_execed(struct kcr_member *member)
{
	struct kcr_parked *parked;
	bool execed = false;

	spin_lock(&member->job->list_lock);
	list_for_each_entry(parked, &member->threads, node)
		execed |= parked->state == KCR_EXECED;
	spin_unlock(&member->job->list_lock);
	return execed;
}

/* The member that called exec while it was to be stopped, or NULL. */
static struct kcr_member *find_execed(struct kcr_job *job)
{
	struct kcr_member *member;

	kcr_for_each_member(member, job) {
		if (has_execed(member))
			return member;
		cond_resched();
	}
	return NULL;
}

/* A program became a client after NOTIFY: it must be notified before it is stopped. */
static bool client_missed(struct kcr_job *job)
{
	struct kcr_member *member;
	bool missed = false;

	if (!job->notification)
		return false;
	kcr_for_each_member(member, job) {
		spin_lock(&job->list_lock);
		missed |= kcr_client_is_untold(job, member->pid);
		spin_unlock(&job->list_lock);
		cond_resched();
	}
	return missed;
}

/*
 * May the caller trace all threads at rest?  Their credentials may have changed
 * since they were added; from here on they stay as they are.
 */
static int check_identities(struct kcr_job *job, struct kcr_member **culprit)
{
	struct kcr_member *member;
	struct kcr_parked *parked;
	int ret = 0;

	kcr_for_each_member(member, job) {
		/* The list does not change while we hold job->lock. */
		list_for_each_entry(parked, &member->threads, node) {
			if (kcr_parked_rests(parked))
				ret = kcr_policy_trace(parked->task,
						       member->flags & KCR_PROCESS_FORKED);
			if (ret) {
				*culprit = member;
				return ret;
			}
			cond_resched();
		}
	}
	return 0;
}

/* All rest: removes the members that died meanwhile and counts the others. */
static int settle(struct kcr_job *job, struct kcr_park *request)
{
	struct kcr_member *member, *next;
	u32 resting;

	request->nr_processes = 0;
	request->nr_threads = 0;
	list_for_each_entry_safe(member, next, &job->processes, node) {
		resting = kcr_member_resting(member);
		request->nr_threads += resting;
		if (resting)
			request->nr_processes++;
		else
			kcr_member_free(member);
		cond_resched();
	}
	if (!request->nr_processes)
		return -ESRCH;
	spin_lock(&job->list_lock);
	job->parked = true;
	spin_unlock(&job->list_lock);
	return 0;
}

static void begin(struct kcr_job *job)
{
	struct kcr_member *member;

	if (!job->parking)
		job->park_start_ns = ktime_get_ns();
	spin_lock(&job->list_lock);
	job->parking = true;
	spin_unlock(&job->list_lock);
	/* RELEASE stopped the watches.  Members that join meanwhile are watched from the start. */
	kcr_for_each_member(member, job) {
		kcr_fork_start(&member->watch);
		cond_resched();
	}
}

/* Everything runs on; a member that called exec must be added again. */
static void give_up(struct kcr_job *job, struct kcr_member *culprit, int reason,
		    struct kcr_park *request)
{
	if (reason == -EAGAIN)
		culprit = find_execed(job);
	if (culprit)
		request->failed_pid = pid_vnr(culprit->pid);
	kcr_parked_release_all(job);
	if (reason == -EAGAIN && culprit)
		kcr_member_free(culprit);
}

long kcr_ioc_park(struct kcr_job *job, void *request)
{
	struct kcr_member *culprit = NULL;
	struct kcr_park *park = request;
	u64 start = ktime_get_ns();
	int ret;

	if (job->held)
		return -EINVAL;
	park->failed_pid = 0;

	begin(job);
	ret = park_members(job, park->timeout_ms ?: DEFAULT_TIMEOUT_MS, &culprit);
	park->elapsed_ns = ktime_get_ns() - start;
	if (!ret)
		ret = check_identities(job, &culprit);
	if (!ret && client_missed(job))
		ret = -EINPROGRESS;
	if (!ret)
		ret = settle(job, park);
	if (ret)
		give_up(job, culprit, ret, park);
	return ret;
}

/* Callbacks go on: threads and processes that they create are not our members. */
static void release_clients(struct kcr_job *job)
{
	struct kcr_member *member;

	kcr_for_each_member(member, job) {
		kcr_fork_stop(&member->watch);
		cond_resched();
	}
	kcr_parked_release_clients(job);
	kcr_clients_outcome(job, KCR_OUTCOME_CONTINUED, 0);
}

static int release_hold(struct kcr_job *job, const struct kcr_release *request)
{
	if (!job->parked || request->signal)
		return -EINVAL;
	release_clients(job);
	return 0;
}

static bool is_torn(struct kcr_job *job)
{
	struct kcr_member *member;
	bool torn = false;

	kcr_for_each_member(member, job)
		torn |= kcr_parked_is_torn(member);
	return torn;
}

static int release_test(struct kcr_job *job, const struct kcr_release *request)
{
	if (!job->parked || request->signal || request->flags != KCR_RELEASE_TEST)
		return -EINVAL;
	return is_torn(job) ? -EAGAIN : 0;
}

long kcr_ioc_release(struct kcr_job *job, void *request)
{
	struct kcr_release *release = request;
	struct kcr_member *member;
	int ret, err = 0;
	bool torn;

	if (release->flags & KCR_RELEASE_TEST)
		return release_test(job, release);
	if (release->flags & KCR_RELEASE_HOLD)
		return release_hold(job, release);
	if (!(job->parking || job->held) || (release->signal && !valid_signal(release->signal)))
		return -EINVAL;

	torn = (job->parked || job->held) && is_torn(job);
	kcr_for_each_member(member, job) {
		kcr_fork_stop(&member->watch);
		if (release->signal) {	/* last, as SIGCONT continues it */
			ret = kill_pid(member->pid, release->signal, 0);
			if (ret && ret != -ESRCH && !err)
				err = ret;
		}
		cond_resched();
	}
	kcr_parked_release_all(job);
	kcr_clients_outcome(job, KCR_OUTCOME_CONTINUED, 0);
	release->stopped_ns = ktime_get_ns() - job->park_start_ns;
	return torn ? -EAGAIN : err;
}
