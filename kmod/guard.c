// SPDX-License-Identifier: GPL-2.0
/*
 * Programs whose memory is still being loaded, page by page, by the owner of the job
 * (userfaultfd).  When its descriptors are closed the kernel forgets which pages are
 * missing, and whoever touches one would find zeros.  The job is closed before any
 * userfaultfd is released, whatever ends the owner: descriptors are closed one after the
 * other, and what that releases is released after the last one.  So all these processes
 * are killed here, and the owner does not get further before each of their threads has
 * left its memory for good: neither a program nor a system call that it has begun ever
 * sees such a zero.
 *
 * A killed thread forks no more: clone(2) fails when a SIGKILL is pending.  One that was
 * forked just before is added by the probe and found in the next round.
 * Locks: see guard.h; watch->lock, then list_lock.
 */
#include <linux/err.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "account.h"
#include "compat/task.h"
#include "guard.h"
#include "job.h"
#include "restart.h"

struct guard {
	struct list_head node;		/* job->guards */
	struct kcr_job *job;
	struct task_struct *leader;	/* referenced */
	struct pid *pid;		/* of the process, referenced */
	struct mm_struct *mm;		/* mm_count reference */
	struct kcr_fork_watch watch;
	struct rcu_head rcu;		/* for the watch, see fork.h */
};

static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child);

/* Atomic if gfp is.  The mm is the process's own.  ERR_PTR(-ENOMEM, -EDQUOT). */
static struct guard *new_guard(struct kcr_job *job, struct task_struct *leader,
			       struct mm_struct *mm, gfp_t gfp)
{
	struct guard *guard;
	int ret = kcr_account_charge(job->account);

	if (ret)
		return ERR_PTR(ret);
	guard = kzalloc(sizeof(*guard), gfp | __GFP_ACCOUNT);
	if (!guard) {
		kcr_account_uncharge(job->account);
		return ERR_PTR(-ENOMEM);
	}
	guard->job = job;
	get_task_struct(leader);
	guard->leader = leader;
	guard->pid = get_pid(task_tgid(leader));
	mmgrab(mm);
	guard->mm = mm;
	guard->watch.process = leader->signal;
	guard->watch.owner = job;
	guard->watch.loading = true;
	guard->watch.forked = follow_fork;
	return guard;
}

/* Never watched, or no more. */
static void drop(struct guard *guard)
{
	kcr_account_uncharge(guard->job->account);
	mmdrop(guard->mm);
	put_pid(guard->pid);
	put_task_struct(guard->leader);
	kfree_rcu(guard, rcu);
}

/* list_lock held.  Drops the guard on an error. */
static int enlist(struct guard *guard)
{
	struct kcr_job *job = guard->job;
	int ret = kcr_fork_add(&guard->watch);

	lockdep_assert_held(&job->list_lock);
	if (ret) {
		drop(guard);
		return ret;
	}
	list_add_tail(&guard->node, &job->guards);
	job->nr_members++;
	kcr_fork_start(&guard->watch);
	return 0;
}

/* After exec it is another program, whose memory is complete. */
static void kill_one(const struct guard *guard)
{
	if (kcr_process_uses(guard->leader, guard->mm))
		kill_pid(guard->pid, SIGKILL, 1);
}

static void kill_listed(struct kcr_job *job)
{
	struct guard *guard;

	lockdep_assert_held(&job->list_lock);
	list_for_each_entry(guard, &job->guards, node)
		kill_one(guard);
}

/*
 * A process was forked.  One that cannot be guarded must not run, and a program that
 * loses a process is not to go on.
 */
static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child)
{
	struct guard *guard, *parent = container_of(watch, struct guard, watch);
	struct kcr_job *job = parent->job;
	bool doomed;
	int ret;

	if (current->mm != parent->mm || child->signal == current->signal ||
	    child->flags & KCR_PF_WORKER)
		return;
	spin_lock(&job->list_lock);
	guard = new_guard(job, child, child->mm, GFP_ATOMIC | __GFP_NOWARN);
	ret = PTR_ERR_OR_ZERO(guard) ?: enlist(guard);
	if (ret)
		kill_listed(job);
	else
		kcr_job_sweep_if_many(job);
	doomed = ret || job->dead;
	spin_unlock(&job->list_lock);
	if (doomed)
		send_sig(SIGKILL, child, 1);
}

/* 0: also if it has died. */
static int guard_half(struct kcr_job *job, const struct kcr_half *half)
{
	struct task_struct *leader;
	struct guard *guard;
	int ret;

	leader = get_pid_task(half->pid, PIDTYPE_TGID);
	if (!leader)
		return 0;
	guard = new_guard(job, leader, half->mm, GFP_KERNEL);
	put_task_struct(leader);
	if (IS_ERR(guard))
		return PTR_ERR(guard);
	spin_lock(&job->list_lock);
	ret = enlist(guard);
	spin_unlock(&job->list_lock);
	return ret;
}

int kcr_guard_begin(struct kcr_job *job)
{
	struct kcr_half *half;
	int ret = 0;

	lockdep_assert_held(&job->lock);
	/* Entries are only ever appended, and stay until the job is freed. */
	spin_lock(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node) {
		if (!half->ready)
			continue;
		spin_unlock(&job->list_lock);
		ret = guard_half(job, half);
		cond_resched();
		spin_lock(&job->list_lock);
		if (ret)
			break;
	}
	spin_unlock(&job->list_lock);
	if (ret)
		kcr_guard_end(job);
	return ret;
}

static void remove(struct guard *guard)
{
	struct kcr_job *job = guard->job;

	/* From here on it appends none. */
	kcr_fork_remove(&guard->watch);
	spin_lock(&job->list_lock);
	list_del(&guard->node);
	job->nr_members--;
	spin_unlock(&job->list_lock);
	drop(guard);
}

static struct guard *first(struct kcr_job *job)
{
	struct guard *guard;

	spin_lock(&job->list_lock);
	guard = list_first_entry_or_null(&job->guards, struct guard, node);
	spin_unlock(&job->list_lock);
	return guard;
}

bool kcr_guard_end(struct kcr_job *job)
{
	struct guard *guard;
	bool any = false;

	lockdep_assert_held(&job->lock);
	while ((guard = first(job))) {
		any = true;
		remove(guard);
		cond_resched();
	}
	return any;
}

void kcr_guard_sweep(struct kcr_job *job)
{
	struct guard *guard, *next;

	lockdep_assert_held(&job->lock);
	spin_lock(&job->list_lock);
	list_for_each_entry_safe(guard, next, &job->guards, node) {
		if (kcr_process_uses(guard->leader, guard->mm))
			continue;
		/* Only we remove guards, so the next one stays. */
		spin_unlock(&job->list_lock);
		remove(guard);
		cond_resched();
		spin_lock(&job->list_lock);
	}
	spin_unlock(&job->list_lock);
}

/* Does any other process than the caller still use its memory? */
static bool kill_round(struct kcr_job *job)
{
	struct guard *guard;
	bool left = false;

	spin_lock(&job->list_lock);
	list_for_each_entry(guard, &job->guards, node) {
		kill_one(guard);
		left |= !same_thread_group(guard->leader, current) &&
			kcr_process_uses(guard->leader, guard->mm);
		cond_resched_lock(&job->list_lock);
	}
	spin_unlock(&job->list_lock);
	return left;
}

void kcr_guard_kill(struct kcr_job *job)
{
	lockdep_assert_held(&job->lock);
	/*
	 * An exiting owner has left its own memory, so nobody waits for it.  One that only closes
	 * the job may be guarded by another owner that does the same.
	 */
	while (kill_round(job)) {
		if (fatal_signal_pending(current) && !(current->flags & PF_EXITING))
			break;
		schedule_timeout_idle(1);
	}
	kcr_guard_end(job);
}
