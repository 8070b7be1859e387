// SPDX-License-Identifier: GPL-2.0
/*
 * The owner's side of a restart: waiting for half-restored processes, releasing
 * them, killing them.  Their own side is kmod/clone.c and kmod/enter.c.
 * Locks: see restart.h; WAIT and RESUME are called under job->lock as well.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "account.h"
#include "compat/dumpable.h"
#include "compat/task.h"
#include "guard.h"
#include "ioctl.h"
#include "restart.h"

#define DEFAULT_WAIT_MS	10000
#define DEATH_POLL_MS	20	/* how often WAIT checks whether a process died */

struct kcr_restart *kcr_restart_get(struct kcr_job *job)
{
	struct kcr_restart *restart, *fresh;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&fresh->processes);

	spin_lock(&job->list_lock);
	if (!list_empty(&job->processes)) {
		restart = ERR_PTR(-EINVAL);
	} else if (job->dead || (job->restart && (job->restart->aborted ||
						  job->restart->resumed))) {
		restart = ERR_PTR(-ECANCELED);
	} else {
		if (!job->restart) {
			job->restart = fresh;
			fresh = NULL;
		}
		restart = job->restart;
	}
	spin_unlock(&job->list_lock);
	kfree(fresh);
	return restart;
}

struct kcr_half *kcr_half_new(struct kcr_job *job)
{
	struct kcr_half *half;
	int ret = kcr_account_charge(job->account);

	if (ret)
		return ERR_PTR(ret);
	half = kzalloc(sizeof(*half), GFP_KERNEL_ACCOUNT);
	if (half)
		return half;
	kcr_account_uncharge(job->account);
	return ERR_PTR(-ENOMEM);
}

void kcr_half_drop(struct kcr_job *job, struct kcr_half *half)
{
	if (!half)
		return;
	if (half->mm)
		mmdrop(half->mm);
	if (half->exe)
		fput(half->exe);
	put_pid(half->pid);
	kcr_account_uncharge(job->account);
	kfree(half);
}

/*
 * The latest one: its PID may have been used before by one that died.  list_lock held, but not
 * all the time: entries stay until the job is freed.
 */
static struct kcr_half *find_number(struct kcr_job *job, pid_t nr)
{
	struct kcr_half *half;

	list_for_each_entry_reverse(half, &job->restart->processes, node) {
		if (pid_vnr(half->pid) == nr)
			return half;
		cond_resched_lock(&job->list_lock);
	}
	return NULL;
}

static bool has_died(struct pid *pid)
{
	struct task_struct *leader;
	bool died = true;

	rcu_read_lock();
	leader = pid_task(pid, PIDTYPE_TGID);
	if (leader)
		died = (READ_ONCE(leader->signal->flags) & SIGNAL_GROUP_EXIT) ||
		       (leader->exit_state && thread_group_empty(leader));
	rcu_read_unlock();
	return died;
}

/* 0: all its threads have entered; -EAGAIN: not yet; -ECHILD: it died. */
static int look(struct kcr_job *job, pid_t nr)
{
	struct kcr_half *half = NULL;
	int ret = -EAGAIN;

	spin_lock(&job->list_lock);
	if (job->restart)
		half = find_number(job, nr);
	if (half && has_died(half->pid))
		ret = -ECHILD;
	else if (half && half->ready)
		ret = 0;
	spin_unlock(&job->list_lock);
	return ret;
}

long kcr_ioc_wait(struct kcr_job *job, void *request)
{
	const struct kcr_wait *wanted = request;
	unsigned int timeout_ms = wanted->timeout_ms ?: DEFAULT_WAIT_MS;
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	unsigned long step = msecs_to_jiffies(min_t(u32, timeout_ms, DEATH_POLL_MS));
	long ret, left;

	for (;;) {
		left = wait_event_interruptible_timeout(job->arrived,
							look(job, wanted->pid) != -EAGAIN, step);
		if (left < 0)
			return -EINTR;
		ret = look(job, wanted->pid);
		if (ret != -EAGAIN)
			return ret;
		if (time_after_eq(jiffies, deadline))
			return -ETIMEDOUT;
	}
}

/* A process that never entered and died is a zombie on purpose. */
static int check_complete(struct kcr_restart *restart)
{
	struct kcr_half *half;

	list_for_each_entry(half, &restart->processes, node) {
		if (has_died(half->pid)) {
			if (half->entered)
				return -ECHILD;
		} else if (!half->ready) {
			return -EBUSY;
		}
	}
	return 0;
}

/* After exec it is another program, which may be a set-user-ID one. */
static bool is_half(const struct task_struct *task, const struct kcr_half *half)
{
	return task && READ_ONCE(task->self_exec_id) == half->exec_id;
}

/*
 * Only now, before its threads wake: as long as some of them have the user's credentials
 * and others still those of their creator, the user must not get access to the memory
 * that both run in.  RCU read lock held.
 */
static void set_dumpable_at_last(const struct kcr_half *half)
{
	struct task_struct *task = pid_task(half->pid, PIDTYPE_TGID);

	if (half->ready && half->dumpable >= 0 && is_half(task, half))
		kcr_task_set_dumpable(task, half->mm, half->dumpable);
}

/* ---- processes that were stopped ---------------------------------------------- */

/*
 * Locks the signal state of a live process: its leader, or NULL.  RCU read
 * lock held.  sighand_struct is type-stable under RCU, so the lock is valid even
 * if the process is just dropping it.
 */
static struct task_struct *lock_signals(struct pid *pid, struct sighand_struct **locked)
{
	struct task_struct *task = pid_task(pid, PIDTYPE_TGID);
	struct sighand_struct *sighand = task ? rcu_dereference(task->sighand) : NULL;

	if (!sighand)
		return NULL;
	spin_lock_irq(&sighand->siglock);
	if (sighand != rcu_access_pointer(task->sighand)) {
		spin_unlock_irq(&sighand->siglock);
		return NULL;
	}
	*locked = sighand;
	return task;
}

/* The parent's process, if it is one of this job. */
static struct kcr_half *find_parent(struct kcr_restart *restart, const struct kcr_half *half)
{
	struct task_struct *task = pid_task(half->pid, PIDTYPE_TGID);
	struct pid *parent = task ? task_tgid(rcu_dereference(task->real_parent)) : NULL;
	struct kcr_half *other;

	list_for_each_entry(other, &restart->processes, node)
		if (other->pid == parent)
			return other;
	return NULL;
}

/* While children stop again, parents must not get the SIGCHLD that they had already. */
static void hush(struct kcr_half *parent, bool on)
{
	struct sighand_struct *sighand;
	struct task_struct *task;
	unsigned long *flags;

	task = lock_signals(parent->pid, &sighand);
	if (!task)
		return;
	if (!is_half(task, parent)) {
		spin_unlock_irq(&sighand->siglock);
		return;
	}
	flags = &sighand->action[SIGCHLD - 1].sa.sa_flags;
	if (on && !(*flags & SA_NOCLDSTOP)) {
		*flags |= SA_NOCLDSTOP;
		parent->hushed = true;
	} else if (!on && parent->hushed) {
		*flags &= ~SA_NOCLDSTOP;
		parent->hushed = false;
	}
	spin_unlock_irq(&sighand->siglock);
}

/* Hushes the parents of all that are to stop; returns how many these are. */
static unsigned int begin_stops(struct kcr_job *job)
{
	struct kcr_half *half, *parent;
	unsigned int count = 0;

	spin_lock(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node) {
		if (!half->stopped)
			continue;
		count++;
		rcu_read_lock();
		set_dumpable_at_last(half);
		parent = find_parent(job->restart, half);
		if (parent)
			hush(parent, true);
		rcu_read_unlock();
		cond_resched_lock(&job->list_lock);
	}
	WRITE_ONCE(job->restart->stopping, count);
	spin_unlock(&job->list_lock);
	return count;
}

/*
 * Wait until all are off their CPUs: the last thread to stop notifies the parent after
 * the flag is set and before it is off its CPU.  RCU read lock held.
 */
static bool stands_still(struct task_struct *leader)
{
	struct task_struct *task;

	if (!(READ_ONCE(leader->signal->flags) & SIGNAL_STOP_STOPPED))
		return false;
	for_each_thread(leader, task)
		if (!READ_ONCE(task->exit_state) &&
		    (READ_ONCE(task->on_rq) || kcr_task_on_cpu(task)))
			return false;
	return true;
}

/*
 * Its signals were blocked so that it stops before any other is handled.  Once it has, they need
 * not be: as at the checkpoint, one that is pending when it is continued interrupts its system
 * call.  Who has been continued already unblocks them itself, after making the call again.
 * siglock, RCU read lock held.
 */
static void unblock_signals(struct task_struct *leader)
{
	struct task_struct *task;

	for_each_thread(leader, task) {
		if (!task_is_stopped(task) || !test_tsk_restore_sigmask(task))
			continue;
		task->blocked = task->saved_sigmask;
		clear_tsk_restore_sigmask(task);
	}
}

/* 0: it is or was stopped; -EAGAIN: not yet; -ECHILD: it died.  list_lock held. */
static int look_whether_stopped(struct kcr_half *half)
{
	struct sighand_struct *sighand;
	struct task_struct *task;

	if (!half->stopped || half->stood)
		return 0;
	if (has_died(half->pid))
		return -ECHILD;
	rcu_read_lock();
	task = lock_signals(half->pid, &sighand);
	if (task) {
		half->stood = stands_still(task);
		if (half->stood)
			unblock_signals(task);
		spin_unlock_irq(&sighand->siglock);
	}
	rcu_read_unlock();
	return !task || half->stood ? 0 : -EAGAIN;
}

/* Likewise for all. */
static int look_stopped(struct kcr_job *job)
{
	struct kcr_half *half;
	int ret = 0, one;

	spin_lock(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node) {
		one = look_whether_stopped(half);
		if (one)
			ret = one;
		if (ret == -ECHILD)
			break;
		cond_resched_lock(&job->list_lock);
	}
	spin_unlock(&job->list_lock);
	return ret;
}

/* list_lock and RCU read lock held. */
static void end_stop(struct kcr_restart *restart, struct kcr_half *half)
{
	struct sighand_struct *sighand;
	struct task_struct *task;

	hush(half, false);
	if (!half->stopped || !find_parent(restart, half))
		return;
	task = lock_signals(half->pid, &sighand);
	if (!task)
		return;
	if (is_half(task, half) && task->signal->flags & SIGNAL_STOP_STOPPED)
		task->signal->group_exit_code = half->stop_signal;
	spin_unlock_irq(&sighand->siglock);
}

/* Restores what wait(2) will report, and the handling of SIGCHLD. */
static void end_stops(struct kcr_job *job)
{
	struct kcr_half *half;

	spin_lock(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node) {
		rcu_read_lock();
		end_stop(job->restart, half);
		rcu_read_unlock();
		cond_resched_lock(&job->list_lock);
	}
	spin_unlock(&job->list_lock);
}

/*
 * Processes that were stopped stop again while all others still sleep:
 * nobody sees that they ran, and no parent is notified a second time.
 */
static int stop_again(struct kcr_job *job)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(DEFAULT_WAIT_MS);
	int ret = 0;

	if (!begin_stops(job))
		return 0;
	wake_up_all(&job->released);
	while ((ret = look_stopped(job)) == -EAGAIN) {
		if (time_after(jiffies, deadline))
			ret = -ETIMEDOUT;
		else if (schedule_timeout_interruptible(1) && signal_pending(current))
			ret = -EINTR;
		if (ret != -EAGAIN)
			break;
	}
	end_stops(job);
	return ret;
}

/* list_lock held. */
static void release_all(struct kcr_restart *restart, bool hold)
{
	struct kcr_half *half;

	rcu_read_lock();
	list_for_each_entry(half, &restart->processes, node)
		if (!half->stopped)
			set_dumpable_at_last(half);
	rcu_read_unlock();
	restart->holding = hold;
	/* A thread that sees it runs, and sees all that was set before. */
	smp_store_release(&restart->resumed, true);
}

static int check_resume(struct kcr_job *job)
{
	int ret = -EINVAL;

	spin_lock(&job->list_lock);
	if (job->restart && !job->restart->aborted && !job->restart->resumed)
		ret = check_complete(job->restart);
	spin_unlock(&job->list_lock);
	return ret;
}

/* All but the held threads run already. */
static bool end_hold(struct kcr_job *job)
{
	bool held;

	spin_lock(&job->list_lock);
	held = job->restart && job->restart->holding;
	if (held)
		WRITE_ONCE(job->restart->holding, false);
	spin_unlock(&job->list_lock);
	if (held)
		wake_up_all(&job->released);
	return held;
}

/* 0 or -errno: they do not run. */
static int release(struct kcr_job *job, struct kcr_resume *resume)
{
	int ret;

	spin_lock(&job->list_lock);
	ret = job->restart->aborted ? -ECANCELED : check_complete(job->restart);
	if (!ret) {
		release_all(job->restart, resume->flags & KCR_RESUME_HOLD);
		resume->nr_threads = job->restart->nr_threads;
	}
	spin_unlock(&job->list_lock);
	if (!ret)
		wake_up_all(&job->released);
	return ret;
}

static int begin_guard(struct kcr_job *job, u32 flags)
{
	if (!(flags & KCR_RESUME_GUARD))
		return 0;
	return kcr_guard_works() ? kcr_guard_begin(job) : -EOPNOTSUPP;
}

/* After an error but EBUSY the job can only be ended. */
long kcr_ioc_resume(struct kcr_job *job, void *request)
{
	struct kcr_resume *resume = request;
	long ret;

	if (resume->flags & KCR_RESUME_LOADED)
		return resume->flags == KCR_RESUME_LOADED && job->restart &&
		       job->restart->resumed && kcr_guard_end(job) ? 0 : -EINVAL;
	if (!resume->flags && end_hold(job))
		return 0;
	ret = check_resume(job);
	if (!ret)
		ret = begin_guard(job, resume->flags);
	if (!ret)
		ret = stop_again(job);
	return ret ? ret : release(job, resume);
}

struct mm_struct *kcr_restart_mm(struct kcr_job *job, pid_t pid)
{
	struct mm_struct *mm = ERR_PTR(-ESRCH);
	struct kcr_half *half = NULL;

	spin_lock(&job->list_lock);
	if (job->restart && !job->restart->resumed)
		half = find_number(job, pid);
	if (half && half->ready && mmget_not_zero(half->mm))
		mm = half->mm;
	spin_unlock(&job->list_lock);
	return mm;
}

static void kill_half(struct kcr_half *half)
{
	bool kill;

	rcu_read_lock();
	kill = is_half(pid_task(half->pid, PIDTYPE_TGID), half);
	rcu_read_unlock();
	if (kill)
		kill_pid(half->pid, SIGKILL, 1);
}

void kcr_restart_abort(struct kcr_job *job)
{
	struct kcr_half *half;

	spin_lock(&job->list_lock);
	job->dead = true;	/* from here on kcr_restart_get() creates none */
	if (job->restart && !job->restart->resumed) {
		WRITE_ONCE(job->restart->aborted, true);
		list_for_each_entry(half, &job->restart->processes, node) {
			kill_half(half);
			cond_resched_lock(&job->list_lock);
		}
	}
	spin_unlock(&job->list_lock);
	end_hold(job);
	wake_up_all(&job->released);
}

void kcr_restart_free(struct kcr_job *job)
{
	struct kcr_half *half, *next;

	if (!job->restart)
		return;
	list_for_each_entry_safe(half, next, &job->restart->processes, node)
		kcr_half_drop(job, half);
	kfree(job->restart);
	job->restart = NULL;
}
