// SPDX-License-Identifier: GPL-2.0
/*
 * Stopping one thread and releasing it.  A task work stops it: the
 * work runs on the way to user mode, where registers and signal state are
 * complete.  The thread sleeps inside the work, killable, until it is released.
 *
 * An interrupted system call has its restart code then, and the kernel decides after the
 * work whether it is made again.  But one that leaves a stop, or was about to, runs the work
 * after that decision: it would be made again whatever comes while it rests.  So it decides
 * once more.
 *
 * A work holds a reference to its kcr_parked, which holds its job and its
 * task.  A thread that is released before its work has run (it may be in a long
 * uninterruptible wait) keeps the work, which then belongs to no job: an
 * orphan.  The next job that stops the thread takes it over, so that a thread
 * has one work however often jobs try.  Locks: see park.h; works_lock nests inside
 * job->list_lock.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <asm/syscall.h>

#include "client.h"
#include "compat/task.h"
#include "compat/wait.h"
#include "lookup.h"
#include "park.h"
#include "restart.h"
#include "stop.h"
#include "syscall.h"

#define ORPHAN_HASH_BITS	8
#define MAX_REPEATED		10

/* Works that are queued and have not begun to run: kcr_parked.queued. */
static LIST_HEAD(works);
/* Those of them that belong to no job (kcr_parked.hash), by task. */
static DEFINE_HASHTABLE(orphans, ORPHAN_HASH_BITS);
static DEFINE_SPINLOCK(works_lock);
static atomic_t nr_parked = ATOMIC_INIT(0);

static void free_parked(struct kref *ref)
{
	struct kcr_parked *parked = container_of(ref, struct kcr_parked, ref);

	put_task_struct(parked->task);
	if (parked->job)
		kcr_job_put(parked->job);
	kfree(parked);
	if (atomic_dec_and_test(&nr_parked))
		wake_up_var(&nr_parked);
}

static void put_parked(struct kcr_parked *parked)
{
	kref_put(&parked->ref, free_parked);
}

struct kcr_parked *kcr_parked_find(struct kcr_job *job, struct task_struct *task)
{
	struct kcr_parked *parked;

	lockdep_assert_held(&job->list_lock);
	hash_for_each_possible(job->threads, parked, hash, (unsigned long)task)
		if (parked->task == task)
			return parked;
	return NULL;
}

/* ---- works in the queue ---------------------------------------------------------- */

/* The work begins to run or was cancelled.  works_lock held. */
static void unqueue(struct kcr_parked *parked)
{
	lockdep_assert_held(&works_lock);
	list_del_init(&parked->queued);
	if (!parked->job)
		hash_del(&parked->hash);
}

/* Released while its work is queued: the work stays, without a reference to the job. */
static void make_orphan(struct kcr_parked *parked)
{
	struct kcr_job *job = NULL;

	spin_lock(&works_lock);
	if (!list_empty(&parked->queued)) {
		job = parked->job;
		parked->job = NULL;
		hash_add(orphans, &parked->hash, (unsigned long)parked->task);
	}
	spin_unlock(&works_lock);
	if (job)
		kcr_job_put(job);
}

/* The orphan of this thread, as the job's now (the work's reference stays), or NULL. */
static struct kcr_parked *take_orphan(struct kcr_job *job, const struct task_struct *task)
{
	struct kcr_parked *parked, *found = NULL;

	lockdep_assert_held(&job->list_lock);
	spin_lock(&works_lock);
	hash_for_each_possible(orphans, parked, hash, (unsigned long)task)
		if (parked->task == task)
			found = parked;
	if (found) {
		hash_del(&found->hash);
		found->job = kcr_job_get(job);
	}
	spin_unlock(&works_lock);
	return found;
}

/* ---- coming to rest -------------------------------------------------------------- */

/* Leaves the state QUEUED or enters it, and wakes the requester. */
static void set_state(struct kcr_parked *parked, enum kcr_parked_state state)
{
	struct kcr_job *job = parked->job;

	lockdep_assert_held(&job->list_lock);
	if (parked->state == KCR_QUEUED)
		job->nr_queued--;
	if (state == KCR_QUEUED)
		job->nr_queued++;
	WRITE_ONCE(parked->state, state);
	if (!job->nr_queued || state == KCR_EXECED || state == KCR_GONE)
		wake_up(&job->arrived);
}

static void fail_call(struct kcr_parked *parked)
{
	struct kcr_call *call = parked->call;

	lockdep_assert_held(&parked->job->list_lock);
	if (!call)
		return;
	parked->call = NULL;
	call->ret = -ESRCH;
	complete(&call->done);
	kcr_call_put(call);
}

/* A vfork child whose parent waits for it must run: nothing else wakes the parent. */
static bool runs_for_parent(struct kcr_member *member, struct task_struct *task)
{
	lockdep_assert_held(&member->job->list_lock);
	return READ_ONCE(task->vfork_done) && member->shares_mm;
}

/*
 * A finished system call has a result here; one that is still running has
 * -ENOSYS and got here from inside the call (a ptrace stop, an io_uring wait).
 */
static bool must_leave_call(struct pt_regs *regs)
{
	return syscall_get_nr(current, regs) >= 0 &&
	       syscall_get_return_value(current, regs) == -ENOSYS && !kcr_syscall_may_rest(regs);
}

/*
 * A call that is about to be made again is to be interrupted again, as what has interrupted it
 * is not known any more.  It needs the time to make it: another work would run before that,
 * on a busy machine again and again.  One that has returned its own number looks the same, and
 * might do so for ever.
 */
static bool must_make_call(struct kcr_parked *parked)
{
	if (!kcr_syscall_is_repeated(current_pt_regs()) || parked->repeated == MAX_REPEATED)
		return false;
	parked->retry_at = jiffies + msecs_to_jiffies(1u << parked->repeated++);
	return true;
}

/* The kernel may have decided on its call since that was noted. */
static void interrupt_again(struct kcr_parked *parked)
{
	kcr_syscall_interrupt_again(&parked->interruption);
	parked->interruption.result = 0;
}

/*
 * Comes to rest, if it may: true if the thread is to sleep.  One that was counted as
 * at rest must, whatever a debugger or SIGCONT did to it since: the census relies on it.
 */
static bool arrive(struct kcr_parked *parked, bool entering)
{
	struct kcr_job *job = parked->job;
	struct kcr_member *member;
	bool rests = false;

	spin_lock(&job->list_lock);
	interrupt_again(parked);
	member = parked->member;
	if (!member)
		goto out;
	member->torn |= parked->state == KCR_STOPPED;
	/* The second from a debugger's stop at the beginning of its exit. */
	if (current->flags & PF_EXITING || current->signal->flags & SIGNAL_GROUP_EXIT) {
		set_state(parked, KCR_GONE);
	} else if (current->mm != member->mm) {
		job->exec_seen = true;
		set_state(parked, KCR_EXECED);
	} else if (parked->state != KCR_STOPPED &&
		   (entering || must_leave_call(current_pt_regs()) ||
		    must_make_call(parked) || runs_for_parent(member, current))) {
		set_state(parked, KCR_RETRY);
	} else {
		set_state(parked, KCR_ARRIVED);
		rests = true;
	}
out:
	spin_unlock(&job->list_lock);
	return rests;
}

static void run_call(struct kcr_call *call)
{
	bool hidden = kcr_notify_signal_hide();

	call->ret = call->fn(call);
	kcr_notify_signal_show(hidden);
	complete(&call->done);
	kcr_call_put(call);
}

/* Sleeps until release or SIGKILL; runs the calls of kcr_member_run(). */
static void rest(struct kcr_parked *parked)
{
	struct kcr_job *job = parked->job;
	struct kcr_call *call;
	int ret;

	do {
		ret = kcr_wait_parked(parked->wake, !READ_ONCE(parked->member) ||
						    READ_ONCE(parked->call));
		spin_lock(&job->list_lock);
		call = parked->call;
		if (ret || !parked->member) {
			fail_call(parked);
			if (parked->member) {
				parked->member->torn = true;
				set_state(parked, KCR_GONE);
			}
			spin_unlock(&job->list_lock);
			return;
		}
		parked->call = NULL;
		spin_unlock(&job->list_lock);
		if (call)
			run_call(call);
	} while (true);
}

static void run_work(struct callback_head *head)
{
	struct kcr_parked *parked = container_of(head, struct kcr_parked, work);

	spin_lock(&works_lock);
	unqueue(parked);
	spin_unlock(&works_lock);

	kcr_hide_eintr(current_pt_regs());
	if (parked->job && arrive(parked, kcr_enter_follows(head))) {
		rest(parked);
		kcr_syscall_see_signals();
	}
	put_parked(parked);
}

/* Queues the work; its reference is taken here and dropped by run_work(). */
static int queue_parked(struct kcr_parked *parked, enum task_work_notify_mode notify)
{
	int ret;

	lockdep_assert_held(&parked->job->list_lock);
	kref_get(&parked->ref);
	init_task_work(&parked->work, run_work);
	spin_lock(&works_lock);
	list_add_tail(&parked->queued, &works);
	spin_unlock(&works_lock);
	set_state(parked, KCR_QUEUED);

	ret = kcr_task_work_add(parked->task, &parked->work, notify);
	if (ret) {
		spin_lock(&works_lock);
		unqueue(parked);
		spin_unlock(&works_lock);
		set_state(parked, KCR_GONE);
		put_parked(parked);
	}
	return ret;
}

static struct kcr_parked *new_parked(struct kcr_job *job, struct task_struct *task)
{
	struct kcr_parked *parked = kzalloc(sizeof(*parked),
					    GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);

	if (!parked)
		return NULL;
	kref_init(&parked->ref);
	INIT_LIST_HEAD(&parked->queued);
	init_waitqueue_head(&parked->wake);
	parked->job = kcr_job_get(job);
	get_task_struct(task);
	parked->task = task;
	parked->state = KCR_GONE;
	atomic_inc(&nr_parked);
	return parked;
}

/* Adds the thread to the member's list, which takes over the caller's reference. */
static void enlist(struct kcr_parked *parked, struct kcr_member *member)
{
	parked->member = member;
	parked->repeated = 0;
	parked->retry_at = jiffies;
	if (parked->task == member->leader)
		list_add(&parked->node, &member->threads);
	else
		list_add_tail(&parked->node, &member->threads);
	hash_add(member->job->threads, &parked->hash, (unsigned long)parked->task);
}

int kcr_parked_start(struct kcr_member *member, struct task_struct *task,
		     enum task_work_notify_mode notify)
{
	struct kcr_job *job = member->job;
	struct kcr_parked *parked;

	lockdep_assert_held(&job->list_lock);
	parked = take_orphan(job, task);
	if (parked) {
		kref_get(&parked->ref);
		enlist(parked, member);
		set_state(parked, KCR_QUEUED);
		return 0;
	}
	parked = new_parked(job, task);
	if (!parked)
		return -ENOMEM;
	enlist(parked, member);
	return queue_parked(parked, notify);
}

void kcr_parked_retry(struct kcr_parked *parked)
{
	if (!runs_for_parent(parked->member, parked->task) &&
	    time_after_eq(jiffies, parked->retry_at))
		queue_parked(parked, TWA_SIGNAL);
}

/*
 * A stopped thread sleeps in get_signal(), past the point where works run.
 * When it is continued it returns to user mode through its work.  Its registers
 * are in memory once it is off its CPU.
 */
void kcr_parked_check_stopped(struct kcr_parked *parked)
{
	struct task_struct *task = parked->task;

	lockdep_assert_held(&parked->job->list_lock);
	if (parked->state != KCR_QUEUED || !kcr_task_stopped_at_signals(task))
		return;
	if (READ_ONCE(task->mm) != parked->member->mm) {
		parked->job->exec_seen = true;
		set_state(parked, KCR_EXECED);
	} else {
		kcr_syscall_note(task, &parked->interruption);
		set_state(parked, KCR_STOPPED);
	}
}

/*
 * One that is killed in its stop frees much before its work runs; but to leave the stop, it
 * takes siglock.
 */
bool kcr_parked_pin(struct kcr_parked *parked)
{
	struct sighand_struct *sighand;

	lockdep_assert_held(&parked->job->list_lock);
	if (!kcr_parked_rests(parked))
		return false;
	sighand = kcr_parked_sighand(parked);
	spin_lock_irq(&sighand->siglock);
	if (parked->state == KCR_ARRIVED || kcr_task_is_stopped(parked->task))
		return true;
	spin_unlock_irq(&sighand->siglock);
	parked->member->torn = true;
	return false;
}

void kcr_parked_unpin(struct kcr_parked *parked)
{
	spin_unlock_irq(&kcr_parked_sighand(parked)->siglock);
}

bool kcr_parked_is_torn(struct kcr_member *member)
{
	struct kcr_parked *parked;
	bool torn = false;

	/* The list does not change while job->lock is held. */
	lockdep_assert_held(&member->job->lock);
	list_for_each_entry(parked, &member->threads, node) {
		/* Killed, it writes to memory long before its work runs. */
		torn |= READ_ONCE(parked->state) == KCR_STOPPED &&
			!kcr_task_is_stopped(parked->task);
		cond_resched();
	}
	/* After the states: whoever leaves STOPPED sets it first. */
	spin_lock(&member->job->list_lock);
	torn |= member->torn;
	spin_unlock(&member->job->list_lock);
	return torn;
}

/*
 * Cancels the work of a thread that will not run it soon.  Others are left
 * to run it: it hides the EINTR that queueing it may have caused.
 */
static void cancel_if_stopped(struct kcr_parked *parked)
{
	struct task_struct *task = parked->task;

	if (kcr_task_is_stopped(task) &&
	    kcr_task_work_cancel(task, &parked->work)) {
		spin_lock(&works_lock);
		unqueue(parked);
		spin_unlock(&works_lock);
		put_parked(parked);
	}
}

/* Removes it from the table and wakes it if it sleeps. */
static void release(struct kcr_parked *parked)
{
	lockdep_assert_held(&parked->job->list_lock);
	hash_del(&parked->hash);
	if (parked->state == KCR_QUEUED)
		parked->job->nr_queued--;
	WRITE_ONCE(parked->state, KCR_GONE);
	WRITE_ONCE(parked->member, NULL);
	wake_up(&parked->wake);
}

void kcr_parked_detach(struct kcr_member *member, struct list_head *list)
{
	struct kcr_job *job = member->job;
	struct kcr_parked *parked;

	lockdep_assert_held(&job->list_lock);
	list_for_each_entry(parked, &member->threads, node)
		release(parked);
	list_splice_tail_init(&member->threads, list);
}

void kcr_parked_forget(struct list_head *list)
{
	struct kcr_parked *parked, *next;

	list_for_each_entry_safe(parked, next, list, node) {
		cancel_if_stopped(parked);
		make_orphan(parked);
		put_parked(parked);
		cond_resched();
	}
}

/* After this no thread joins or leaves the members' lists: job->lock is held. */
static void end_parking(struct kcr_job *job, bool hold)
{
	lockdep_assert_held(&job->lock);
	spin_lock(&job->list_lock);
	job->parking = false;
	job->parked = false;
	job->held = hold;
	job->exec_seen = false;
	job->fork_error = 0;
	spin_unlock(&job->list_lock);
}

/* Releases the threads of the member; with `hold`, only those that callbacks do not hold. */
static void release_member(struct kcr_member *member, bool hold, struct list_head *released)
{
	struct kcr_parked *parked, *next;
	struct kcr_job *job = member->job;

	list_for_each_entry_safe(parked, next, &member->threads, node) {
		spin_lock(&job->list_lock);
		if (!hold || !kcr_client_holds(job, member->pid, parked->task,
					       KCR_ANSWER_FREE_CONTINUE)) {
			release(parked);
			list_move_tail(&parked->node, released);
		}
		spin_unlock(&job->list_lock);
		cond_resched();
	}
	spin_lock(&job->list_lock);
	member->torn = false;
	spin_unlock(&job->list_lock);
}

static void release_members(struct kcr_job *job, bool hold)
{
	struct kcr_member *member;
	LIST_HEAD(released);

	end_parking(job, hold);
	kcr_for_each_member(member, job)
		release_member(member, hold, &released);
	kcr_parked_forget(&released);
}

void kcr_parked_release_all(struct kcr_job *job)
{
	release_members(job, false);
}

void kcr_parked_release_clients(struct kcr_job *job)
{
	release_members(job, true);
}

/* No job is open: the remaining works are of threads in long uninterruptible sleeps. */
void kcr_parked_cancel_all(void)
{
	struct kcr_parked *parked;

	spin_lock(&works_lock);
	while (!list_empty(&works)) {
		parked = list_first_entry(&works, struct kcr_parked, queued);
		unqueue(parked);
		kref_get(&parked->ref);
		spin_unlock(&works_lock);
		if (kcr_task_work_cancel(parked->task, &parked->work))
			put_parked(parked);
		put_parked(parked);
		spin_lock(&works_lock);
	}
	spin_unlock(&works_lock);
	/* What could not be cancelled is about to run. */
	wait_var_event(&nr_parked, !atomic_read(&nr_parked));
}
