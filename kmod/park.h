/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One thread that a job stops.  kmod/parked.c implements it, kmod/park.c
 * decides which threads are stopped and waits for them.
 *
 * All fields are guarded by job->list_lock.  While a thread rests (ARRIVED or
 * STOPPED) and the lock is held it can neither run user code nor free its registers,
 * kernel stack and sighand, which may be read.  A stopped one may be killed, and begin
 * to exit: kcr_parked_pin() is for what is freed before its task works run.
 */
#ifndef KCR_PARK_H
#define KCR_PARK_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include "job.h"
#include "syscall.h"

enum kcr_parked_state {
	KCR_QUEUED,	/* its work has not run */
	KCR_RETRY,	/* its work ran at a bad moment: queue another */
	KCR_ARRIVED,	/* sleeps in its work */
	KCR_STOPPED,	/* in a group stop; its work keeps it from user mode */
	KCR_EXECED,	/* has another address space; runs on */
	KCR_GONE,	/* exited or exiting */
};

struct kcr_parked {
	struct kref ref;		/* held by its member's list and its queued work */
	struct callback_head work;
	struct list_head node;		/* member->threads */
	struct hlist_node hash;		/* job->threads; of an orphan: all orphans */
	struct list_head queued;	/* all works that have not run */
	struct kcr_job *job;		/* referenced; NULL: an orphan, see parked.c */
	struct kcr_member *member;	/* NULL: released */
	struct task_struct *task;	/* referenced */
	struct kcr_call *call;		/* what kcr_member_run() wants of it */
	wait_queue_head_t wake;
	enum kcr_parked_state state;
	struct kcr_interruption interruption;	/* before it leaves its stop */
	unsigned int repeated;		/* times that it had to repeat its call */
	unsigned long retry_at;		/* RETRY: not before, in jiffies */
};

/* The entry of this task, or NULL.  job->list_lock held. */
struct kcr_parked *kcr_parked_find(struct kcr_job *job, struct task_struct *task);

/* Starts stopping a thread of the member; 0 or -errno (-ESRCH: it exits). list_lock held. */
int kcr_parked_start(struct kcr_member *member, struct task_struct *task,
		     enum task_work_notify_mode notify);
/* Queues the work of a thread in state RETRY again, when it is time.  list_lock held. */
void kcr_parked_retry(struct kcr_parked *parked);
/* Checks whether the thread rests in a group stop.  list_lock held. */
void kcr_parked_check_stopped(struct kcr_parked *parked);
/*
 * Keeps a thread as it is, if it rests: with siglock, until kcr_parked_unpin().  If it is about to
 * leave its stop it is not kept, and its process is torn.  list_lock held, interrupts on.
 */
bool kcr_parked_pin(struct kcr_parked *parked);
void kcr_parked_unpin(struct kcr_parked *parked);
/*
 * Has a thread of the parked member been continued, or killed, since it came to rest?  An
 * exiting thread writes to memory.  job->lock held; may sleep.
 */
bool kcr_parked_is_torn(struct kcr_member *member);

static inline bool kcr_parked_rests(const struct kcr_parked *parked)
{
	enum kcr_parked_state state = READ_ONCE(parked->state);

	return state == KCR_ARRIVED || state == KCR_STOPPED;
}

/*
 * Its signal handlers, which it cannot lose while it rests: to leave that state
 * it takes list_lock first.  list_lock held.
 */
static inline struct sighand_struct *kcr_parked_sighand(const struct kcr_parked *parked)
{
	return rcu_dereference_protected(parked->task->sighand,
					 lockdep_is_held(&parked->job->list_lock) &&
						 kcr_parked_rests(parked));
}

/*
 * As kcr_member_run(), by this thread of a parked job; -ESRCH: it cannot, as it is stopped or
 * dying.
 */
int kcr_parked_run(struct kcr_parked *parked, struct kcr_call *call);

/* Moves all threads of the member to `list` and releases them.  list_lock held. */
void kcr_parked_detach(struct kcr_member *member, struct list_head *list);
/* Frees the threads of such a list.  Needs neither lock. */
void kcr_parked_forget(struct list_head *list);
/* Lets all threads of the job run on and frees them.  job->lock held. */
void kcr_parked_release_all(struct kcr_job *job);
/* Likewise for threads that callbacks do not hold; the job is `held` then, not `parked`. */
void kcr_parked_release_clients(struct kcr_job *job);
/* Cancels every work that is still queued, when no job is open; at module exit. */
void kcr_parked_cancel_all(void);

/* ---- kmod/member.c -------------------------------------------------------- */

/* Finds mem_fops of /proc/PID/mem, and creates the queue of sweeps: 0 or -errno. */
int kcr_member_init(void);
/* No job is left.  May sleep. */
void kcr_member_exit(void);

/* A thread of the member at rest, or NULL.  job->list_lock held. */
struct kcr_parked *kcr_member_thread(struct kcr_member *member);
/* Removes the member from its job and frees it.  job->lock held. */
void kcr_member_free(struct kcr_member *member);

#endif /* KCR_PARK_H */
