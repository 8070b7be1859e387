// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_SNAPSHOT: copy-on-write copies of the address spaces of a parked
 * job, to be read while the programs run on.
 *
 * A parked thread forks.  The child exists only to carry the copy: before it
 * is woken for the first time, the fork watch takes a users reference to its
 * mm and sends it SIGKILL, so it dies without executing one instruction of
 * the program, and the thread reaps it before the call returns.  What stays
 * is an address space without a process, held by member->snapshot, which is freed
 * with the job.  Nothing is left to kill, to reap or to wait for.
 *
 * The program cannot notice: the child sends no signal (exit_signal 0), shares
 * its descriptor table and its directories (no copy that would keep a pipe
 * open), and what it adds to the usage of children is subtracted again.
 */
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <uapi/linux/wait.h>

#include "compat/mm.h"
#include "fork.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"

#define CLONE_TRIES	3

/* One copy being made; see kcr_call in job.h for its ownership. */
struct snapshot {
	struct kcr_call call;
	struct kcr_fork_catch catch;
	struct mm_struct *mm;		/* the copy, an mm_users reference until it is taken over */
};

/* What wait4() adds to the parent for a dead child. */
struct child_usage {
	u64 utime, stime, gtime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt, inblock, oublock, maxrss;
	struct task_io_accounting ioac;
};

/* In the parent, before the child is woken. */
static void catch_child(struct kcr_fork_catch *catch, struct task_struct *child)
{
	struct snapshot *snapshot = container_of(catch, struct snapshot, catch);

	snapshot->mm = child->mm;
	mmget(snapshot->mm);
	/* khugepaged would charge huge pages to nobody. */
	kcr_mm_keep_small(snapshot->mm);
	send_sig(SIGKILL, child, 1);
}

static spinlock_t *own_siglock(void)
{
	return &rcu_dereference_protected(current->sighand, true)->siglock;
}

static void usage_save(struct child_usage *usage)
{
	struct signal_struct *sig = current->signal;

	spin_lock_irq(own_siglock());
	usage->utime = sig->cutime;
	usage->stime = sig->cstime;
	usage->gtime = sig->cgtime;
	usage->nvcsw = sig->cnvcsw;
	usage->nivcsw = sig->cnivcsw;
	usage->min_flt = sig->cmin_flt;
	usage->maj_flt = sig->cmaj_flt;
	usage->inblock = sig->cinblock;
	usage->oublock = sig->coublock;
	usage->maxrss = sig->cmaxrss;
	usage->ioac = sig->ioac;
	spin_unlock_irq(own_siglock());
}

/*
 * All threads of the process are parked: no other has reaped meanwhile.  (Unless the
 * requester was killed and they run on: then what they reap just now is not counted.)
 */
static void usage_restore(const struct child_usage *usage)
{
	struct signal_struct *sig = current->signal;

	spin_lock_irq(own_siglock());
	write_seqlock(&sig->stats_lock);
	sig->cutime = usage->utime;
	sig->cstime = usage->stime;
	sig->cgtime = usage->gtime;
	sig->cnvcsw = usage->nvcsw;
	sig->cnivcsw = usage->nivcsw;
	sig->cmin_flt = usage->min_flt;
	sig->cmaj_flt = usage->maj_flt;
	sig->cinblock = usage->inblock;
	sig->coublock = usage->oublock;
	sig->cmaxrss = usage->maxrss;
	sig->ioac = usage->ioac;
	write_sequnlock(&sig->stats_lock);
	spin_unlock_irq(own_siglock());
}

/*
 * Waits for the dead child.  Signals are blocked, so only SIGKILL or a
 * work queued for this thread can interrupt: after SIGKILL init reaps.
 */
static void reap(pid_t pid)
{
	struct child_usage usage;

	usage_save(&usage);
	while (kcr_kernel_wait4(pid, __WALL) == -ERESTARTSYS) {
		if (fatal_signal_pending(current))
			return;
		schedule_timeout_uninterruptible(1);
		if (kcr_kernel_wait4(pid, __WALL | WNOHANG))
			break;
	}
	usage_restore(&usage);
}

/* clone(2) fails with a pending signal; the child inherits the mask. */
static void block_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigprocmask(SIG_SETMASK, &all, old);
}

/* The child would become the init of a namespace that its parent prepared. */
static bool forks_elsewhere(void)
{
	struct nsproxy *ns = current->nsproxy;

	if (ns->pid_ns_for_children != task_active_pid_ns(current))
		return true;
#ifdef CONFIG_TIME_NS
	if (ns->time_ns_for_children != ns->time_ns)
		return true;
#endif
	return false;
}

/*
 * A userfaultfd may have asked for an event of each fork, which would then
 * wait for a monitor that may be parked.  And a private huge page cannot safely
 * be shared with a copy: if the pool is empty when the program writes to
 * it, the kernel unmaps it from the copy, or kills the program.
 */
static bool is_uncopyable(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	bool found = false;

	mmap_read_lock(mm);
	kcr_for_each_vma(mm, vma) {
		found = vma->vm_flags & KCR_VM_UFFD ||
			(vma->vm_flags & (VM_HUGETLB | VM_MAYSHARE)) == VM_HUGETLB;
		if (found)
			break;
	}
	mmap_read_unlock(mm);
	return found;
}

/* In a parked thread. */
static int copy_mm(struct kcr_call *call)
{
	struct kernel_clone_args args = {
		.flags = CLONE_UNTRACED | CLONE_FILES | CLONE_FS,
	};
	struct snapshot *snapshot = container_of(call, struct snapshot, call);
	int tries = CLONE_TRIES;
	sigset_t mask;
	pid_t pid;

	if (forks_elsewhere() || is_uncopyable(current->mm))
		return -EOPNOTSUPP;
	snapshot->catch.forked = catch_child;
	kcr_fork_catch_begin(&snapshot->catch);
	block_signals(&mask);
	do {
		pid = kcr_kernel_clone(&args);
	} while (pid == -ERESTARTNOINTR && --tries);
	if (pid > 0)
		reap(pid);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	kcr_fork_catch_end(&snapshot->catch);
	if (pid == -ERESTARTNOINTR)
		return fatal_signal_pending(current) ? -ESRCH : -EAGAIN;
	return pid < 0 ? pid : 0;
}

/* The copy of an earlier member with the same address space, or NULL. */
static struct mm_struct *shared_copy(struct kcr_job *job, struct kcr_member *member)
{
	struct kcr_member *other;

	kcr_for_each_member(other, job) {
		if (other == member)
			return NULL;
		if (other->mm == member->mm && other->snapshot) {
			mmget(other->snapshot);
			return other->snapshot;
		}
	}
	return NULL;
}

static void free_snapshot(struct kref *ref)
{
	struct snapshot *snapshot = container_of(ref, struct snapshot, call.ref);

	if (snapshot->mm)
		mmput(snapshot->mm);
	kfree(snapshot);
}

static int snapshot_member(struct kcr_job *job, struct kcr_member *member)
{
	struct snapshot *snapshot;
	int err;

	member->snapshot = shared_copy(job, member);
	if (member->snapshot)
		return 0;
	snapshot = kzalloc(sizeof(*snapshot), GFP_KERNEL_ACCOUNT);
	if (!snapshot)
		return -ENOMEM;
	kcr_call_init(&snapshot->call, copy_mm, free_snapshot);
	err = kcr_member_run(member, &snapshot->call);
	/* -EINTR: the call may still be running, so the copy is not ours. */
	if (err != -EINTR)
		swap(member->snapshot, snapshot->mm);
	kcr_call_put(&snapshot->call);
	/* A member that was killed meanwhile is no error. */
	return err == -ESRCH ? 0 : err;
}

static int snapshot_all(struct kcr_job *job)
{
	struct kcr_member *member;
	int err;

	kcr_for_each_member(member, job) {
		err = snapshot_member(job, member);
		if (err)
			return err;
	}
	return 0;
}

static bool has_snapshot(struct kcr_job *job)
{
	struct kcr_member *member;

	kcr_for_each_member(member, job)
		if (member->snapshot)
			return true;
	return false;
}

void kcr_snapshot_end(struct kcr_job *job)
{
	struct kcr_member *member;

	kcr_for_each_member(member, job) {
		if (member->snapshot)
			mmput(member->snapshot);
		member->snapshot = NULL;
	}
}

long kcr_ioc_snapshot(struct kcr_job *job, void *request)
{
	struct kcr_snapshot *snapshot = request;
	u64 start = ktime_get_ns();
	int err;

	if (!kcr_have_clone())
		return -EOPNOTSUPP;
	if (has_snapshot(job))
		return -EEXIST;
	err = snapshot_all(job);
	if (err)
		kcr_snapshot_end(job);
	snapshot->elapsed_ns = ktime_get_ns() - start;
	return err;
}
