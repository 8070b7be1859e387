// SPDX-License-Identifier: GPL-2.0
/*
 * The processes of a job: joining, finding, leaving.  A process joins by ADD,
 * or because a member forked it; it is in at most one job, as it has one watch
 * (kmod/fork.h).  Locks: see job.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "account.h"
#include "compat/task.h"
#include "compat/workqueue.h"
#include "ioctl.h"
#include "park.h"
#include "policy.h"

/* An open /proc/PID/mem is recognised by these. */
static const struct file_operations *mem_fops __ro_after_init;

/*
 * Sweeps run on the CPU that caused them, but in a queue of their own, so that
 * other works of that CPU do not wait for them.
 */
static struct workqueue_struct *sweeps;

int __init kcr_member_init(void)
{
	struct file *file = filp_open("/proc/self/mem", O_RDONLY, 0);

	if (IS_ERR(file)) {
		pr_err("cannot open /proc/self/mem: is /proc mounted?\n");
		return PTR_ERR(file);
	}
	mem_fops = file->f_op;
	fput(file);
	sweeps = alloc_workqueue("kcr_sweep", KCR_WQ_PERCPU | WQ_CPU_INTENSIVE, 0);
	return sweeps ? 0 : -ENOMEM;
}

void kcr_member_exit(void)
{
	destroy_workqueue(sweeps);
}

/* ---- members --------------------------------------------------------------- */

static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child);

/*
 * Atomic if gfp is.  The caller makes sure that the process lives and that mm is
 * its own.  ERR_PTR(-ENOMEM, -EDQUOT).
 */
static struct kcr_member *new_member(struct kcr_job *job, struct task_struct *leader,
				     struct mm_struct *mm, gfp_t gfp)
{
	struct kcr_member *member;
	int ret = kcr_account_charge(job->account);

	if (ret)
		return ERR_PTR(ret);
	member = kzalloc(sizeof(*member), gfp | __GFP_ACCOUNT);
	if (!member) {
		kcr_account_uncharge(job->account);
		return ERR_PTR(-ENOMEM);
	}
	INIT_LIST_HEAD(&member->threads);
	member->job = job;
	get_task_struct(leader);
	member->leader = leader;
	member->pid = get_pid(task_tgid(leader));
	mmgrab(mm);
	member->mm = mm;
	member->watch.process = leader->signal;
	member->watch.owner = job;
	member->watch.forked = follow_fork;
	return member;
}

static void drop_member(struct kcr_member *member)
{
	kcr_account_uncharge(member->job->account);
	put_pid(member->pid);
	mmdrop(member->mm);
	put_task_struct(member->leader);
	kfree_rcu(member, rcu);
}

static int enlist(struct kcr_member *member)
{
	struct kcr_job *job = member->job;
	int ret;

	lockdep_assert_held(&job->list_lock);
	if (job->restart)		/* a job is for one or the other, as kcr_restart_get() says */
		return -EINVAL;
	ret = kcr_fork_add(&member->watch);
	if (ret)
		return ret;
	list_add_tail_rcu(&member->node, &job->processes);
	job->nr_members++;
	return 0;
}

void kcr_member_free(struct kcr_member *member)
{
	struct kcr_job *job = member->job;
	LIST_HEAD(gone);

	lockdep_assert_held(&job->lock);
	kcr_fork_stop(&member->watch);
	spin_lock(&job->list_lock);
	list_del_rcu(&member->node);
	job->nr_members--;
	kcr_parked_detach(member, &gone);
	spin_unlock(&job->list_lock);

	kcr_parked_forget(&gone);
	if (member->snapshot)
		mmput(member->snapshot);
	/* Only now may another job add it: it will find the works that its threads still have. */
	kcr_fork_remove(&member->watch);
	drop_member(member);
}

/* ---- members that have died --------------------------------------------------- */

/* All its threads are past their last access to memory; it may still be a zombie. */
static bool is_gone(const struct kcr_member *member)
{
	const struct task_struct *leader = member->leader;

	return READ_ONCE(leader->exit_state) && READ_ONCE(leader->signal->nr_threads) <= 1;
}

void kcr_job_sweep(struct kcr_job *job)
{
	struct kcr_member *member, *next;

	lockdep_assert_held(&job->lock);
	if (job->parking || READ_ONCE(job->nr_members) < READ_ONCE(job->sweep_at))
		return;
	list_for_each_entry_safe(member, next, &job->processes, node) {
		if (is_gone(member) && !member->snapshot)
			kcr_member_free(member);
		cond_resched();
	}
	spin_lock(&job->list_lock);
	job->sweep_at = max(2 * job->nr_members, (unsigned int)KCR_FIRST_SWEEP);
	spin_unlock(&job->list_lock);
}

/* Does nothing while a call holds job->lock: a long one sweeps itself. */
void kcr_job_sweep_work(struct work_struct *work)
{
	struct kcr_job *job = container_of(work, struct kcr_job, sweep);

	if (mutex_trylock(&job->lock)) {
		kcr_job_sweep(job);
		mutex_unlock(&job->lock);
	}
	kcr_job_put(job);
}

/* Amortised: as many members have joined since the last sweep as this one visits. */
static void sweep_if_many(struct kcr_job *job)
{
	lockdep_assert_held(&job->list_lock);
	if (job->nr_members < job->sweep_at || job->parking)
		return;
	kcr_job_get(job);
	if (!queue_work(sweeps, &job->sweep))
		kcr_job_put(job);	/* not the last: the queued work has one */
}

/* ---- following forks ------------------------------------------------------------ */

/* A process that a member has forked joins.  ERR_PTR: it does not. */
static struct kcr_member *adopt(struct kcr_member *parent, struct task_struct *child)
{
	struct kcr_job *job = parent->job;
	struct kcr_member *member;
	int ret;

	member = new_member(job, child, child->mm, GFP_ATOMIC | __GFP_NOWARN);

	if (IS_ERR(member))
		return member;
	member->flags = KCR_PROCESS_FORKED;
	member->shares_mm = parent->mm == member->mm;
	ret = enlist(member);
	if (ret) {
		drop_member(member);
		return ERR_PTR(ret);
	}
	kcr_fork_start(&member->watch);
	sweep_if_many(job);
	return member;
}

/* A member's child or new thread is about to run for the first time. */
static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child)
{
	struct kcr_member *member, *parent = container_of(watch, struct kcr_member, watch);
	struct kcr_job *job = parent->job;
	struct kcr_parked *maker;
	int ret = 0;

	/* After exec it is not the program that ADD was permitted for, nor are its children. */
	if (current->mm != parent->mm)
		return;
	spin_lock(&job->list_lock);
	/* A parked thread forks only on our behalf: a snapshot. */
	maker = kcr_parked_find(job, current);
	if (job->dead || (maker && kcr_parked_rests(maker)) || child->flags & KCR_PF_WORKER)
		goto out;
	member = child->signal == current->signal ? parent : adopt(parent, child);
	if (IS_ERR(member))
		ret = PTR_ERR(member);
	else if (job->parking)
		ret = kcr_parked_start(member, child, TWA_RESUME);
	/* It may have been found in /proc and added before we got here: the census stops it. */
	if (ret && ret != -ESRCH && ret != -EEXIST)
		job->fork_error = ret;
out:
	spin_unlock(&job->list_lock);
}

struct kcr_parked *kcr_member_thread(struct kcr_member *member)
{
	struct kcr_parked *parked;

	lockdep_assert_held(&member->job->list_lock);
	list_for_each_entry(parked, &member->threads, node)
		if (kcr_parked_rests(parked))
			return parked;
	return NULL;
}

struct kcr_member *kcr_job_find(struct kcr_job *job, pid_t pid)
{
	struct kcr_member *member, *found = NULL;

	lockdep_assert_held(&job->lock);
	if (pid <= 0)
		return NULL;
	kcr_for_each_member(member, job)
		if (pid_vnr(member->pid) == pid)
			found = member;
	return found;
}

u32 kcr_member_resting(const struct kcr_member *member)
{
	struct kcr_parked *parked;
	u32 resting = 0;

	lockdep_assert_held(&member->job->lock);
	list_for_each_entry(parked, &member->threads, node) {
		resting += kcr_parked_rests(parked);
		cond_resched();
	}
	return resting;
}

bool kcr_member_shares_mm(const struct kcr_member *member)
{
	int resting = 1 + kcr_member_resting(member);
	struct kcr_member *other;

	if (atomic_read(&member->mm->mm_users) <= resting)
		return false;
	kcr_for_each_member(other, member->job)
		if (other != member && other->mm == member->mm)
			resting += kcr_member_resting(other);
	return atomic_read(&member->mm->mm_users) > resting;
}

struct mm_struct *kcr_job_mm(struct kcr_job *job, pid_t pid, bool snapshot)
{
	struct kcr_member *member = kcr_job_find(job, pid);
	bool rests;

	if (!snapshot && !job->parked)
		return ERR_PTR(-EINVAL);
	if (!member)
		return ERR_PTR(-ESRCH);
	if (snapshot) {
		if (!member->snapshot)
			return ERR_PTR(-ENODATA);
		mmget(member->snapshot);
		return member->snapshot;
	}
	spin_lock(&job->list_lock);
	rests = kcr_member_thread(member);
	spin_unlock(&job->list_lock);
	return rests && mmget_not_zero(member->mm) ? member->mm : ERR_PTR(-ESRCH);
}

/* ---- ADD ------------------------------------------------------------------- */

/* True if a thread of the process uses this address space. */
static bool uses_mm(struct task_struct *leader, struct mm_struct *mm)
{
	struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for_each_thread(leader, task)
		found |= READ_ONCE(task->mm) == mm;
	rcu_read_unlock();
	return found;
}

static int check_target(struct task_struct *leader, struct mm_struct *mm)
{
	if (leader->flags & PF_KTHREAD)
		return -EPERM;
	if (task_active_pid_ns(leader) != task_active_pid_ns(current))
		return -EPERM;
	if (same_thread_group(leader, current))
		return -EDEADLK;
	if (!mm || !uses_mm(leader, mm))
		return -ESRCH;
	return kcr_policy_trace(leader, false);
}

bool kcr_member_is_trusted(const struct kcr_member *member)
{
	struct task_struct *leader = get_pid_task(member->pid, PIDTYPE_TGID);
	bool trusted;

	if (!leader)
		return false;
	trusted = uses_mm(leader, member->mm) &&
		  !kcr_policy_trace(leader, member->flags & KCR_PROCESS_FORKED);
	put_task_struct(leader);
	return trusted;
}

/* Notes which other members share the memory of a new one.  job->lock held. */
static void note_sharing(struct kcr_member *member)
{
	struct kcr_job *job = member->job;
	struct kcr_member *other;

	kcr_for_each_member(other, job) {
		cond_resched();
		if (other == member || other->mm != member->mm)
			continue;
		spin_lock(&job->list_lock);
		member->shares_mm = true;
		other->shares_mm = true;
		spin_unlock(&job->list_lock);
	}
}

static int add_task(struct kcr_job *job, struct task_struct *leader, struct mm_struct *mm)
{
	struct kcr_member *member;
	int ret = check_target(leader, mm);

	if (ret)
		return ret;
	member = new_member(job, leader, mm, GFP_KERNEL);
	if (IS_ERR(member))
		return PTR_ERR(member);
	spin_lock(&job->list_lock);
	ret = enlist(member);
	if (!ret)
		job->parked = false;	/* it runs: PARK has to look at all of them again */
	spin_unlock(&job->list_lock);
	if (ret) {
		drop_member(member);
		return ret;
	}
	note_sharing(member);
	kcr_fork_start(&member->watch);
	return 0;
}

static struct task_struct *find_leader(pid_t nr)
{
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(find_vpid(nr), PIDTYPE_TGID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	return task;
}

long kcr_ioc_add(struct kcr_job *job, void *request)
{
	const struct kcr_add *add = request;
	struct task_struct *leader;
	struct file *file;
	int ret;

	kcr_job_sweep(job);
	file = fget(add->mem_fd);
	if (!file)
		return -EBADF;
	ret = -EBADF;
	if (file->f_op != mem_fops)
		goto out_file;
	ret = -ESRCH;
	leader = find_leader(add->pid);
	if (!leader)
		goto out_file;
	/* The file holds an mm_count reference to the mm that its opener may read. */
	ret = add_task(job, leader, file->private_data);
	if (!ret)
		kcr_policy_audit("checkpoints process", task_tgid_nr(leader));
	put_task_struct(leader);
out_file:
	fput(file);
	return ret;
}
