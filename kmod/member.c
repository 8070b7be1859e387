// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs and their processes: making, finding, listing, ending.  A process
 * joins by ADD, or because a member forked it; it is in one job at most.
 * Locks: see job.h; registry_lock nests inside job->list_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>

#include "compat/dumpable.h"
#include "client.h"
#include "compat/task.h"
#include "park.h"

static atomic_t nr_jobs = ATOMIC_INIT(0);

/* All members of all jobs that have not ended. */
static LIST_HEAD(registry);
static DEFINE_SPINLOCK(registry_lock);

/* What an open /proc/PID/mem is recognised by. */
static const struct file_operations *mem_fops __ro_after_init;

int __init kcr_member_init(void)
{
	struct file *file = filp_open("/proc/self/mem", O_RDONLY, 0);

	if (IS_ERR(file)) {
		pr_err("cannot open /proc/self/mem: is /proc mounted?\n");
		return PTR_ERR(file);
	}
	mem_fops = file->f_op;
	fput(file);
	return 0;
}

/* ---- jobs ------------------------------------------------------------------ */

struct kcr_job *kcr_job_new(void)
{
	struct kcr_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);

	if (!job)
		return NULL;
	kref_init(&job->ref);
	mutex_init(&job->lock);
	spin_lock_init(&job->list_lock);
	INIT_LIST_HEAD(&job->processes);
	INIT_LIST_HEAD(&job->clients);
	hash_init(job->threads);
	init_waitqueue_head(&job->arrived);
	init_waitqueue_head(&job->released);
	job->owner_tgid = current->tgid;
	job->owner = get_pid(task_tgid(current));
	job->owner_files = current->files;
	atomic_inc(&nr_jobs);
	return job;
}

struct kcr_job *kcr_job_get(struct kcr_job *job)
{
	kref_get(&job->ref);
	return job;
}

static void free_job(struct kref *ref)
{
	struct kcr_job *job = container_of(ref, struct kcr_job, ref);

	kcr_restart_free(job);
	kfree(job->notification);
	put_pid(job->owner);
	kfree(job);
	if (atomic_dec_and_test(&nr_jobs))
		wake_up_var(&nr_jobs);
}

void kcr_job_put(struct kcr_job *job)
{
	kref_put(&job->ref, free_job);
}

void kcr_job_wait_none(void)
{
	wait_var_event(&nr_jobs, !atomic_read(&nr_jobs));
}

void kcr_job_end(struct kcr_job *job)
{
	struct kcr_member *member, *next;

	/* Wakes a PARK that is under way in another thread of the owner. */
	spin_lock(&job->list_lock);
	job->dead = true;
	spin_unlock(&job->list_lock);
	wake_up_all(&job->arrived);

	mutex_lock(&job->lock);
	list_for_each_entry(member, &job->processes, node)
		kcr_fork_unwatch(&member->watch);
	kcr_parked_release_all(job);
	kcr_snapshot_end(job);
	list_for_each_entry_safe(member, next, &job->processes, node)
		kcr_member_free(member);
	kcr_restart_abort(job);
	kcr_clients_end(job);
	mutex_unlock(&job->lock);
}

/* ---- members --------------------------------------------------------------- */

/* Atomic. The caller knows that the process lives and that mm is its own. */
static struct kcr_member *new_member(struct kcr_job *job, struct task_struct *leader,
				     struct mm_struct *mm, gfp_t gfp)
{
	struct kcr_member *member = kzalloc(sizeof(*member), gfp);

	if (!member)
		return NULL;
	INIT_LIST_HEAD(&member->threads);
	INIT_HLIST_NODE(&member->watch.node);
	member->job = job;
	get_task_struct(leader);
	member->leader = leader;
	member->pid = get_pid(task_tgid(leader));
	mmgrab(mm);
	member->mm = mm;
	member->watch.process = leader->signal;
	return member;
}

static void drop_member(struct kcr_member *member)
{
	put_pid(member->pid);
	mmdrop(member->mm);
	put_task_struct(member->leader);
	kfree(member);
}

static int register_member(struct kcr_member *member)
{
	struct kcr_job *job = member->job;
	struct kcr_member *other;
	int ret = 0;

	lockdep_assert_held(&job->list_lock);
	spin_lock(&registry_lock);
	list_for_each_entry(other, &registry, registered)
		if (other->watch.process == member->watch.process)
			ret = other->job == job ? -EEXIST : -EBUSY;
	if (!ret) {
		list_add_tail(&member->registered, &registry);
		list_add_tail(&member->node, &job->processes);
	}
	spin_unlock(&registry_lock);
	return ret;
}

void kcr_member_free(struct kcr_member *member)
{
	struct kcr_job *job = member->job;
	LIST_HEAD(gone);

	lockdep_assert_held(&job->lock);
	kcr_fork_unwatch(&member->watch);
	spin_lock(&job->list_lock);
	list_del(&member->node);
	spin_lock(&registry_lock);
	list_del(&member->registered);
	spin_unlock(&registry_lock);
	kcr_parked_detach(member, &gone);
	spin_unlock(&job->list_lock);

	kcr_parked_forget(&gone);
	if (member->snapshot)
		mmput(member->snapshot);
	drop_member(member);
}

/* A member's child or new thread is about to run for the first time. */
static void follow_fork(struct kcr_fork_watch *watch, struct task_struct *child)
{
	struct kcr_member *member, *parent = container_of(watch, struct kcr_member, watch);
	struct kcr_job *job = parent->job;
	struct kcr_parked *maker;

	/* Who called exec is not what ADD was allowed for, nor is what it forks. */
	if (current->mm != parent->mm)
		return;
	spin_lock(&job->list_lock);
	/* A parked thread that forks does so for us: a snapshot. */
	maker = kcr_parked_find(job, current);
	if (job->dead || (maker && kcr_parked_rests(maker)) || child->flags & KCR_PF_WORKER)
		goto out;
	if (child->signal == current->signal) {
		member = parent;
	} else {
		member = new_member(job, child, child->mm, GFP_ATOMIC | __GFP_NOWARN);
		if (!member || register_member(member))
			goto err_lost;
		member->flags = KCR_PROCESS_FORKED;
		member->watch.forked = follow_fork;
		kcr_fork_watch_nested(&member->watch);
	}
	if (job->parking && kcr_parked_start(member, child, TWA_RESUME) == -ENOMEM)
		goto err_lost;
	goto out;

err_lost:
	job->fork_lost = true;
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
	spin_lock(&job->list_lock);
	list_for_each_entry(member, &job->processes, node)
		if (pid_vnr(member->pid) == pid)
			found = member;
	spin_unlock(&job->list_lock);
	return found;
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
	return 0;
}

static int add_task(struct kcr_job *job, struct task_struct *leader, struct mm_struct *mm)
{
	struct kcr_member *member;
	int ret = check_target(leader, mm);

	if (ret)
		return ret;
	member = new_member(job, leader, mm, GFP_KERNEL_ACCOUNT);
	if (!member)
		return -ENOMEM;
	member->watch.forked = follow_fork;
	spin_lock(&job->list_lock);
	ret = register_member(member);
	spin_unlock(&job->list_lock);
	if (ret)
		drop_member(member);
	else
		kcr_fork_watch(&member->watch);
	return ret;
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

long kcr_ioc_add(struct kcr_job *job, void __user *argp)
{
	struct task_struct *leader;
	struct kcr_add request;
	struct file *file;
	int ret;

	lockdep_assert_held(&job->lock);
	ret = kcr_request_get(&request, sizeof(request), 0, argp);
	if (ret)
		return ret;
	if (job->restart)
		return -EINVAL;
	file = fget(request.mem_fd);
	if (!file)
		return -EBADF;
	ret = -EBADF;
	if (file->f_op != mem_fops)
		goto out_file;
	ret = -ESRCH;
	leader = find_leader(request.pid);
	if (!leader)
		goto out_file;
	/* The file holds a mm_count reference to the mm that its opener may read. */
	ret = add_task(job, leader, file->private_data);
	put_task_struct(leader);
out_file:
	fput(file);
	return ret;
}

/* ---- LIST ------------------------------------------------------------------ */

static const void *object_of(const struct task_struct *task, size_t offset)
{
	return *(const void * const *)((const char *)task + offset);
}

/*
 * A number that is the same for all members whose task_struct holds the same
 * pointer at this offset: the place of the first of them, from 1.
 */
static u32 shared_id(struct kcr_job *job, const struct task_struct *task, size_t offset)
{
	struct kcr_member *member;
	struct kcr_parked *parked;
	u32 id = 0;

	list_for_each_entry(member, &job->processes, node) {
		id++;
		parked = kcr_member_thread(member);
		if (parked && object_of(parked->task, offset) == object_of(task, offset))
			break;
	}
	return id;
}

static u32 process_flags(struct kcr_member *member)
{
	struct signal_struct *signal = member->watch.process;
	struct kcr_parked *parked;
	u32 flags = member->flags;

	if (signal->flags & SIGNAL_STOP_STOPPED || signal->group_stop_count)
		flags |= KCR_PROCESS_STOPPED;
	if (signal->is_child_subreaper)
		flags |= KCR_PROCESS_SUBREAPER;
	list_for_each_entry(parked, &member->threads, node) {
		if (!kcr_parked_rests(parked))
			continue;
		if (test_tsk_thread_flag(parked->task, TIF_ADDR32))
			flags |= KCR_PROCESS_COMPAT;
		if (parked->task->ptrace)
			flags |= KCR_PROCESS_TRACED;
		if (!list_empty_careful(&parked->task->ptraced))
			flags |= KCR_PROCESS_TRACER;
		if (kcr_task_has_io_uring(parked->task))
			flags |= KCR_PROCESS_IO_URING;
	}
	/* A leader that has ended stays until the last of its threads goes. */
	if (READ_ONCE(member->leader->exit_state)) {
		flags |= KCR_PROCESS_LEADERLESS;
		if (member->leader->ptrace)
			flags |= KCR_PROCESS_TRACED;
	}
	return flags;
}

/* list_lock held; false if the process died. */
static bool describe(struct kcr_job *job, struct kcr_member *member, struct kcr_process *process)
{
	struct kcr_parked *parked = kcr_member_thread(member);
	struct task_struct *task;

	if (!parked)
		return false;
	task = parked->task;
	memset(process, 0, sizeof(*process));
	process->pid = pid_vnr(member->pid);
	process->flags = process_flags(member);
	list_for_each_entry(parked, &member->threads, node)
		process->nr_threads += kcr_parked_rests(parked);
	process->exit_signal = member->leader->exit_signal;
	if (process->flags & KCR_PROCESS_STOPPED) {
		process->stop_signal = task->jobctl & JOBCTL_STOP_SIGMASK;
		/* wait(2) clears the code when it has reported it. */
		if (!READ_ONCE(task->signal->group_exit_code))
			process->flags |= KCR_PROCESS_STOP_SEEN;
	}
	if (process->flags & KCR_PROCESS_LEADERLESS)
		process->leader_exit = member->leader->exit_code;
	process->dumpable = kcr_task_dumpable(task, member->mm);
	process->mm_id = shared_id(job, task, offsetof(struct task_struct, mm));
	process->files_id = shared_id(job, task, offsetof(struct task_struct, files));
	process->fs_id = shared_id(job, task, offsetof(struct task_struct, fs));
	process->sighand_id = shared_id(job, task, offsetof(struct task_struct, sighand));
	if (member->mm->def_flags & VM_LOCKED)
		process->mm_def_flags |= KCR_VMA_LOCKED;
	if (member->mm->def_flags & VM_LOCKONFAULT)
		process->mm_def_flags |= KCR_VMA_LOCKONFAULT;
	return true;
}

long kcr_ioc_list(struct kcr_job *job, void __user *argp)
{
	struct kcr_process *processes;
	struct kcr_member *member;
	struct kcr_list request;
	u32 capacity = 0, nr = 0;
	int ret;

	lockdep_assert_held(&job->lock);
	ret = kcr_request_get(&request, sizeof(request), 0, argp);
	if (ret)
		return ret;
	if (!job->parked)
		return -EINVAL;
	list_for_each_entry(member, &job->processes, node)
		capacity++;
	processes = kvcalloc(capacity, sizeof(*processes), GFP_KERNEL_ACCOUNT);
	if (!processes)
		return -ENOMEM;
	spin_lock(&job->list_lock);
	list_for_each_entry(member, &job->processes, node)
		if (nr < capacity && describe(job, member, &processes[nr]))
			nr++;
	spin_unlock(&job->list_lock);

	if (nr > request.count)
		ret = -ENOSPC;
	else if (copy_to_user(u64_to_user_ptr(request.processes), processes,
			      nr * sizeof(*processes)))
		ret = -EFAULT;
	kvfree(processes);
	request.count = nr;
	if (copy_to_user(argp, &request, sizeof(request)))
		return -EFAULT;
	return ret;
}
