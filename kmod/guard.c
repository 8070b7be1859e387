// SPDX-License-Identifier: GPL-2.0
/*
 * GUARD and FAULTING; see guard.h.
 *
 * A guarded process has a fork watch, so it is in no other job, and its children are guarded
 * before they run.  One that called exec is no longer meant: it has no memory of the image.
 *
 * When the job ends early, a fork may be under way, past the point where a deadly signal
 * ends it: so the watches stay until the processes have ended, and kill such children.
 * `tidy` does so, and removes dead processes when there are many.
 *
 * Locks: the list is appended to under job->list_lock, also by forks; entries are removed
 * under job->lock, `walk` and list_lock.  FAULTING takes `walk` alone: FINISH waits under
 * job->lock for callbacks, which may need memory.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "account.h"
#include "compat/mm.h"
#include "compat/task.h"
#include "guard.h"
#include "ioctl.h"
#include "job.h"
#include "restart.h"

#define FIRST_SWEEP	64		/* processes */
#define END_POLL	(HZ / 20)	/* how often to look whether killed ones have ended */

struct kcr_guard {
	struct kcr_job *job;		/* `tidy` has a reference while it is queued */
	struct mutex walk;
	struct list_head processes;	/* struct guarded */
	unsigned int nr_processes;
	unsigned int sweep_at;		/* at this many the dead ones are removed */
	bool killed;
	struct delayed_work tidy;
};

struct guarded {
	struct list_head node;
	struct kcr_guard *guard;
	struct task_struct *leader;	/* referenced, with its signal_struct */
	struct pid *pid;		/* of the process, referenced */
	u64 exec_id;
	struct mm_struct *mm;		/* mm_count reference */
	struct kcr_fork_watch watch;
	struct rcu_head rcu;		/* for the watch, see fork.h */
};

bool kcr_guard_works(void)
{
	return KCR_HAVE_UFFD_EVENTS;
}

/* ---- processes ------------------------------------------------------------------ */

static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child);

/* Atomic if gfp is.  ERR_PTR(-ENOMEM, -EDQUOT). */
static struct guarded *new_guarded(struct kcr_guard *guard, struct task_struct *leader,
				   struct mm_struct *mm, gfp_t gfp)
{
	struct guarded *one;
	int ret = kcr_account_charge(guard->job->account);

	if (ret)
		return ERR_PTR(ret);
	one = kzalloc(sizeof(*one), gfp | __GFP_ACCOUNT);
	if (!one) {
		kcr_account_uncharge(guard->job->account);
		return ERR_PTR(-ENOMEM);
	}
	one->guard = guard;
	get_task_struct(leader);
	one->leader = leader;
	one->pid = get_pid(task_tgid(leader));
	one->exec_id = READ_ONCE(leader->self_exec_id);
	mmgrab(mm);
	one->mm = mm;
	one->watch.process = leader->signal;
	one->watch.owner = guard->job;
	one->watch.loading = true;
	one->watch.forked = follow_fork;
	return one;
}

static void drop(struct guarded *one)
{
	kcr_account_uncharge(one->guard->job->account);
	put_pid(one->pid);
	mmdrop(one->mm);
	put_task_struct(one->leader);
	kfree_rcu(one, rcu);
}

/* list_lock held. */
static int enlist(struct guarded *one)
{
	struct kcr_guard *guard = one->guard;
	int ret = kcr_fork_add(&one->watch);

	if (ret)
		return ret;
	list_add_tail_rcu(&one->node, &guard->processes);
	guard->nr_processes++;
	kcr_fork_start(&one->watch);
	return 0;
}

static void remove(struct guarded *one)
{
	struct kcr_job *job = one->guard->job;

	lockdep_assert_held(&job->lock);
	lockdep_assert_held(&one->guard->walk);
	kcr_fork_stop(&one->watch);
	spin_lock(&job->list_lock);
	list_del_rcu(&one->node);
	one->guard->nr_processes--;
	spin_unlock(&job->list_lock);
	kcr_fork_remove(&one->watch);
	drop(one);
}

/* Have all its threads ended, or called exec?  Then nothing of it touches memory any more. */
static bool is_gone(const struct guarded *one)
{
	if (READ_ONCE(one->leader->self_exec_id) != one->exec_id)
		return true;
	return READ_ONCE(one->leader->exit_state) && READ_ONCE(one->leader->signal->nr_threads) <= 1;
}

static void remove_gone(struct kcr_guard *guard, bool all)
{
	struct guarded *one, *next;

	mutex_lock(&guard->walk);
	list_for_each_entry_safe(one, next, &guard->processes, node) {
		if (all || is_gone(one))
			remove(one);
		cond_resched();
	}
	mutex_unlock(&guard->walk);
}

/* A fork at the end of the list adds one while its parent is removed. */
static void remove_all(struct kcr_guard *guard)
{
	do {
		remove_gone(guard, true);
	} while (!list_empty(&guard->processes));
}

static void queue_tidy(struct kcr_guard *guard, unsigned long delay)
{
	kcr_job_get(guard->job);
	if (!schedule_delayed_work(&guard->tidy, delay))
		kcr_job_put(guard->job);	/* not the last: the queued work has one */
}

static void tidy(struct work_struct *work)
{
	struct kcr_guard *guard = container_of(to_delayed_work(work), struct kcr_guard, tidy);
	struct kcr_job *job = guard->job;

	/* A call of the owner may hold it for as long as the owner likes. */
	if (!mutex_trylock(&job->lock)) {
		queue_tidy(guard, END_POLL);
		kcr_job_put(job);
		return;
	}
	remove_gone(guard, false);
	spin_lock(&job->list_lock);
	guard->sweep_at = max(2 * guard->nr_processes, (unsigned int)FIRST_SWEEP);
	spin_unlock(&job->list_lock);
	if (guard->killed && !list_empty(&guard->processes))
		queue_tidy(guard, END_POLL);
	mutex_unlock(&job->lock);
	kcr_job_put(job);
}

/* ---- forks ----------------------------------------------------------------------- */

/* A child that shares the memory, or has a copy of what is loaded of it, joins.  0 or -errno. */
static int adopt(struct kcr_guard *guard, struct task_struct *child)
{
	struct guarded *one = new_guarded(guard, child, child->mm, GFP_ATOMIC | __GFP_NOWARN);
	int ret;

	if (IS_ERR(one))
		return PTR_ERR(one);
	ret = enlist(one);
	if (ret)
		drop(one);
	else if (guard->nr_processes >= guard->sweep_at)
		queue_tidy(guard, 0);
	return ret;
}

/* Before the child runs for the first time. */
static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child)
{
	struct guarded *parent = container_of(watch, struct guarded, watch);
	struct kcr_guard *guard = parent->guard;

	/* After exec it is another program; a thread ends with its process. */
	if (current->mm != parent->mm || child->signal == current->signal ||
	    child->flags & KCR_PF_WORKER)
		return;
	spin_lock(&guard->job->list_lock);
	/* One that is not guarded might see memory that was never loaded. */
	if (guard->killed || adopt(guard, child))
		send_sig(SIGKILL, child, 1);
	spin_unlock(&guard->job->list_lock);
}

/* ---- begin and end ------------------------------------------------------------------ */

static struct task_struct *leader_of(struct pid *pid)
{
	struct task_struct *leader;

	rcu_read_lock();
	leader = pid_task(pid, PIDTYPE_TGID);
	if (leader)
		get_task_struct(leader);
	rcu_read_unlock();
	return leader;
}

static int add_half(struct kcr_guard *guard, const struct kcr_half *half)
{
	struct task_struct *leader = leader_of(half->pid);
	struct guarded *one;
	int ret = 0;

	if (!leader)
		return 0;
	one = new_guarded(guard, leader, half->mm, GFP_KERNEL);
	put_task_struct(leader);
	if (IS_ERR(one))
		return PTR_ERR(one);
	spin_lock(&guard->job->list_lock);
	ret = enlist(one);
	spin_unlock(&guard->job->list_lock);
	if (ret)
		drop(one);
	return ret;
}

/* The job's guard, which stays until the job is freed: FAULTING does not take job->lock. */
static struct kcr_guard *get_guard(struct kcr_job *job)
{
	struct kcr_guard *guard = job->guard;

	if (guard)
		return guard;
	guard = kzalloc(sizeof(*guard), GFP_KERNEL_ACCOUNT);
	if (!guard)
		return NULL;
	guard->job = job;
	guard->sweep_at = FIRST_SWEEP;
	mutex_init(&guard->walk);
	INIT_LIST_HEAD(&guard->processes);
	INIT_DELAYED_WORK(&guard->tidy, tidy);
	/* Pairs with the load in kcr_ioc_faulting(): what is seen is complete. */
	smp_store_release(&job->guard, guard);
	return guard;
}

int kcr_guard_begin(struct kcr_job *job)
{
	struct kcr_guard *guard = get_guard(job);
	struct kcr_half *half;
	int ret = 0;

	lockdep_assert_held(&job->lock);
	if (!guard)
		return -ENOMEM;
	if (!list_empty(&guard->processes))
		return 0;
	/* All have entered, so none is added any more, and none goes before the job. */
	list_for_each_entry(half, &job->restart->processes, node) {
		if (half->ready)
			ret = add_half(guard, half);
		if (ret)
			break;
		cond_resched();
	}
	if (ret)
		remove_all(guard);
	return ret;
}

bool kcr_guard_end(struct kcr_job *job)
{
	lockdep_assert_held(&job->lock);
	if (!job->guard || job->guard->killed)
		return false;
	remove_all(job->guard);
	return true;
}

static void kill_one(const struct guarded *one)
{
	const struct task_struct *task;
	bool same;

	rcu_read_lock();
	task = pid_task(one->pid, PIDTYPE_TGID);
	same = task && READ_ONCE(task->self_exec_id) == one->exec_id;
	rcu_read_unlock();
	if (same)
		kill_pid(one->pid, SIGKILL, 1);
}

void kcr_guard_kill(struct kcr_job *job)
{
	struct kcr_guard *guard = job->guard;
	struct guarded *one;

	lockdep_assert_held(&job->lock);
	if (!guard || guard->killed || list_empty(&guard->processes))
		return;
	spin_lock(&job->list_lock);
	guard->killed = true;
	list_for_each_entry(one, &guard->processes, node) {
		kill_one(one);
		cond_resched_lock(&job->list_lock);
	}
	spin_unlock(&job->list_lock);
	queue_tidy(guard, END_POLL);
}

void kcr_guard_free(struct kcr_job *job)
{
	kfree(job->guard);
	job->guard = NULL;
}

/* ---- FAULTING ------------------------------------------------------------------------- */

/*
 * Adds the mappings whose faults go to this userfaultfd, but for those that a fork was to
 * empty (MADV_WIPEONFORK): it is asked for those of children.  1: there are some of either, 0:
 * none.  `file` may be any: a mapping's pointer is that of no other kind of file.
 */
static int find_ranges(struct mm_struct *mm, const struct file *file,
		       struct kcr_faulting_range *out, u32 capacity, u32 *count)
{
	struct vm_area_struct *vma;
	int ret = mmap_read_lock_killable(mm);

	if (ret)
		return ret;
	ret = 0;
	kcr_for_each_vma(mm, vma) {
		if (!file->private_data || kcr_vma_userfault(vma) != file->private_data)
			continue;
		ret = 1;
		if (vma->vm_flags & VM_WIPEONFORK)
			continue;
		if (*count < capacity)
			out[*count] = (struct kcr_faulting_range){
				.start = vma->vm_start, .end = vma->vm_end,
				.origin = (u64)vma->vm_pgoff << PAGE_SHIFT,
			};
		++*count;
	}
	mmap_read_unlock(mm);
	return ret;
}

/* In the first guarded process that has any; as find_ranges(). */
static int find_process(struct kcr_guard *guard, const struct file *file,
			struct kcr_faulting_range *out, u32 capacity, u32 *count)
{
	struct guarded *one;
	int ret = 0;

	list_for_each_entry_rcu(one, &guard->processes, node,
				lockdep_is_held(&guard->walk)) {
		struct mm_struct *mm = mmget_not_zero(one->mm) ? one->mm : NULL;

		if (!mm)
			continue;
		ret = find_ranges(mm, file, out, capacity, count);
		mmput(mm);
		if (ret)
			break;
		cond_resched();
	}
	return ret;
}

static int fill(struct kcr_guard *guard, struct kcr_faulting *req, const struct file *file,
		struct kcr_faulting_range *ranges, u32 capacity)
{
	int ret = mutex_lock_killable(&guard->walk);

	if (ret)
		return ret;
	req->count = 0;
	ret = find_process(guard, file, ranges, capacity, &req->count);
	mutex_unlock(&guard->walk);
	if (ret < 0)
		return ret;
	if (!ret)
		return -ENOENT;
	if (req->count > capacity)
		return -ENOSPC;
	return copy_to_user(u64_to_user_ptr(req->ranges), ranges,
			    req->count * sizeof(*ranges)) ? -EFAULT : 0;
}

/* Not under job->lock. */
long kcr_ioc_faulting(struct kcr_job *job, void *request)
{
	struct kcr_faulting *req = request;
	u32 capacity = min_t(u32, req->count, KCR_FAULTING_MAX);
	/* Pairs with the store in get_guard(). */
	struct kcr_guard *guard = smp_load_acquire(&job->guard);
	struct kcr_faulting_range *ranges;
	struct file *file;
	int ret = -ENOMEM;

	if (task_tgid(current) != job->owner)
		return -EPERM;
	if (!guard)
		return -EINVAL;
	file = fget(req->fd);
	if (!file)
		return -EBADF;
	ranges = kvcalloc(capacity + 1, sizeof(*ranges), GFP_KERNEL_ACCOUNT);
	if (ranges)
		ret = fill(guard, req, file, ranges, capacity);
	kvfree(ranges);
	fput(file);
	return ret;
}
