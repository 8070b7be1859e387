// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_CLONE: a child with a chosen PID.
 *
 * Choosing the PID needs CAP_CHECKPOINT_RESTORE, which an ordinary user
 * lacks.  The capability is lent for the one kernel_clone(): the caller runs
 * it under a copy of its own credentials with that bit added, and takes its
 * own back at once.  The child inherits the copy and gives the bit back in a
 * task work, queued before it is woken: neither of them ever executes user
 * code with it.  Only cap_effective is touched, never cap_permitted, so that
 * commit_creds() sees no gain and leaves dumpable and the parent-death signal
 * alone.
 *
 * A new process enters restart->processes at the same time, see restart.h.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "fork.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "policy.h"
#include "restart.h"

#define KNOWN_CLONE_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | \
			   CLONE_PARENT | CLONE_THREAD | CLONE_SYSVSEM)

/* The first task work of the child, which frees it itself. */
struct newborn {
	struct callback_head work;
	struct kcr_job *job;
	kernel_cap_t effective;		/* the child's own, to be restored */
	bool lent;
};

/* The caller's state of one call, on its stack. */
struct birth {
	struct kcr_fork_catch catch;
	struct kcr_job *job;
	struct newborn *born;		/* NULL: handed over to the child */
	struct kcr_half *half;		/* to register; NULL: a thread, or done */
	bool shares_mm;			/* a process, not a thread, with CLONE_VM */
};

/* In the child, before its first user instruction. */
static void settle(struct callback_head *work)
{
	struct newborn *born = container_of(work, struct newborn, work);
	struct kcr_job *job = born->job;
	struct cred *cred;

	if (born->lent && !(current->flags & PF_EXITING)) {
		cred = prepare_creds();
		if (cred) {
			cred->cap_effective = born->effective;
			commit_creds(cred);
		} else {
			send_sig(SIGKILL, current, 1);
		}
	}
	kfree(born);
	kcr_job_put(job);
}

/* In the parent, atomic; the child is not yet woken. */
static void forked(struct kcr_fork_catch *catch, struct task_struct *child)
{
	struct birth *birth = container_of(catch, struct birth, catch);
	struct kcr_job *job = birth->job;
	bool doomed;

	if (!birth->born)
		return;
	spin_lock(&job->list_lock);
	doomed = job->restart->aborted;
	if (birth->half) {
		birth->half->pid = get_pid(task_pid(child));
		birth->half->exec_id = READ_ONCE(child->self_exec_id);
		if (birth->shares_mm) {
			birth->half->mm = child->mm;
			mmgrab(child->mm);
		}
		list_add_tail(&birth->half->node, &job->restart->processes);
		birth->half = NULL;
	}
	spin_unlock(&job->list_lock);

	kcr_job_get(job);
	if (kcr_task_work_add(child, &birth->born->work, TWA_RESUME)) {
		/* Only an exiting task refuses a task work. */
		kcr_job_put(job);
		doomed = true;
	} else {
		birth->born = NULL;
	}
	if (doomed)
		send_sig(SIGKILL, child, 1);
}

/*
 * kernel_clone() with the capability lent for its duration.  The assignment
 * is what override_creds() does in every version; its reference counting,
 * which changed in 6.14, is not needed: `raised` is ours throughout.
 */
static pid_t clone_raised(struct kernel_clone_args *args, struct cred *raised)
{
	const struct cred *own = current_cred();
	pid_t pid;

	cap_raise(raised->cap_effective, CAP_CHECKPOINT_RESTORE);
	rcu_assign_pointer(current->cred, raised);
	pid = kcr_kernel_clone(args);
	rcu_assign_pointer(current->cred, own);
	return pid;
}

static pid_t clone_watched(struct birth *birth, struct kernel_clone_args *args)
{
	struct cred *raised = NULL;
	pid_t pid;

	if (birth->born->lent) {
		raised = prepare_creds();
		if (!raised)
			return -ENOMEM;
	}
	birth->catch.forked = forked;
	kcr_fork_catch_begin(&birth->catch);
	pid = raised ? clone_raised(args, raised) : kcr_kernel_clone(args);
	kcr_fork_catch_end(&birth->catch);
	if (raised)
		put_cred(raised);
	return pid;
}

static int check(const struct kcr_clone *request)
{
	if (request->clone_flags & ~(u64)KNOWN_CLONE_FLAGS)
		return -EINVAL;
	if (!valid_signal(request->exit_signal) || request->tid < 0)
		return -EINVAL;
	if ((request->clone_flags & CLONE_THREAD) && request->exit_signal)
		return -EINVAL;
	/* clone3(2) would refuse these two together as well. */
	if ((request->clone_flags & CLONE_SIGHAND) && !(request->clone_flags & CLONE_VM))
		return -EINVAL;
	return kcr_policy_clone(request->tid);
}

/* The child returns from the ioctl too, with 0. */
static long clone_one(struct kcr_job *job, const struct kcr_clone *request)
{
	pid_t tid = request->tid;
	struct kernel_clone_args args = {
		.flags = request->clone_flags | CLONE_UNTRACED,
		.stack = request->stack,
		.exit_signal = request->exit_signal,
		.set_tid = &tid,
		.set_tid_size = tid ? 1 : 0,
	};
	struct birth birth = { .job = job, .shares_mm = request->clone_flags & CLONE_VM };
	pid_t pid;

	birth.born = kzalloc(sizeof(*birth.born), GFP_KERNEL_ACCOUNT);
	if (!birth.born)
		return -ENOMEM;
	init_task_work(&birth.born->work, settle);
	birth.born->job = job;
	birth.born->lent = tid && !kcr_policy_has_right();
	birth.born->effective = current_cred()->cap_effective;
	if (!(request->clone_flags & CLONE_THREAD))
		birth.half = kcr_half_new(job);
	if (IS_ERR(birth.half)) {
		pid = PTR_ERR(birth.half);
	} else {
		pid = clone_watched(&birth, &args);
		kcr_half_drop(job, birth.half);
	}
	kfree(birth.born);
	return pid;
}

/*
 * In a half-restored process or the job's owner; not under job->lock.  The job is
 * pinned: with CLONE_FILES the child may close the descriptor that the caller
 * is still using.
 */
long kcr_ioc_clone(struct kcr_job *job, void *request)
{
	const struct kcr_clone *wanted = request;
	struct kcr_restart *restart;
	long ret;

	if (!kcr_have_clone())
		return -EOPNOTSUPP;
	ret = check(wanted);
	if (ret)
		return ret;
	kcr_job_get(job);
	restart = kcr_restart_get(job);
	ret = IS_ERR(restart) ? PTR_ERR(restart) : clone_one(job, wanted);
	if (wanted->tid && ret > 0)
		kcr_policy_audit("restarts with number", wanted->tid);
	kcr_job_put(job);
	return ret;
}
