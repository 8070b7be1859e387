// SPDX-License-Identifier: GPL-2.0
/*
 * A job's lifetime, and who may give it commands.  Locks: see job.h.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "account.h"
#include "client.h"
#include "guard.h"
#include "hold.h"
#include "park.h"

static atomic_t nr_jobs = ATOMIC_INIT(0);

struct kcr_job *kcr_job_new(void)
{
	struct kcr_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	struct kcr_account *account;

	if (!job)
		return ERR_PTR(-ENOMEM);
	account = kcr_account_open();
	if (IS_ERR(account)) {
		kfree(job);
		return ERR_CAST(account);
	}
	job->account = account;
	job->sweep_at = KCR_FIRST_SWEEP;
	INIT_WORK(&job->sweep, kcr_job_sweep_work);
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

	kcr_guard_free(job);
	kcr_restart_free(job);
	kcr_mover_free(job);
	kfree(job->notification);
	put_pid(job->owner);
	kcr_account_close(job->account);
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
	kcr_for_each_member(member, job) {
		kcr_fork_stop(&member->watch);
		cond_resched();
	}
	kcr_parked_release_all(job);
	kcr_snapshot_end(job);
	list_for_each_entry_safe(member, next, &job->processes, node) {
		kcr_member_free(member);
		cond_resched();
	}
	kcr_hold_end(job);
	kcr_guard_kill(job);
	kcr_restart_abort(job);
	kcr_clients_end(job);
	mutex_unlock(&job->lock);
}

long kcr_job_lock(struct kcr_job *job)
{
	/* Half-restored processes have the descriptor too, and others could get it from them. */
	if (task_tgid(current) != job->owner)
		return -EPERM;
	if (mutex_lock_killable(&job->lock))
		return -EINTR;
	if (!READ_ONCE(job->dead))
		return 0;
	mutex_unlock(&job->lock);
	return -ECANCELED;
}
