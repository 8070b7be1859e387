/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job: one open file of /dev/kcr, and the processes that it holds or creates.
 * Read this first; kmod/ioctl.c has the commands that it takes, kmod/job.c its
 * beginning and end; kmod/member.c adds processes, kmod/park.c stops them,
 * kmod/fork.c catches forks, kmod/thread.c reads threads, kmod/pages.c copies
 * memory, kmod/track.c tracks changes of it, kmod/snapshot.c copies address
 * spaces, kmod/notify.c notifies clients (kmod/client.c), kmod/clone.c,
 * kmod/enter.c and kmod/restart.c restart, kmod/guard.c while memory is loaded; kmod/hold.c
 * holds signals back.  kmod/policy.c decides who may, kmod/account.c how much.
 *
 * Locks: job->lock (mutex) serialises the ioctls of a job, except CLONE, ENTER
 * and WAIT, which are called by its half-restored processes.  job->list_lock (spin)
 * guards the lists and the counters; it is also taken by the fork probe and
 * by arriving threads; sighand->siglock nests inside it.
 */
#ifndef KCR_JOB_H
#define KCR_JOB_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/task_work.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "fork.h"
#include "uapi/linux/kcr.h"

struct file;
struct mm_struct;
struct kcr_account;
struct kcr_guard;
struct kcr_holder;
struct kcr_notification;
struct kcr_restart;

#define KCR_THREAD_HASH_BITS	8
#define KCR_FIRST_SWEEP		64	/* members */

struct kcr_job {
	struct kref ref;		/* held by the open file and every queued work */
	struct mutex lock;
	spinlock_t list_lock;
	pid_t owner_tgid;		/* the owner: its first close ends the job */
	struct pid *owner;		/* the same, referenced */
	struct kcr_account *account;	/* charged for its processes */
	struct list_head processes;	/* struct kcr_member, in the order of joining */
	unsigned int nr_members;
	unsigned int sweep_at;		/* at this many members remove the dead ones */
	struct work_struct sweep;	/* does so; holds a reference while it is queued */
	DECLARE_HASHTABLE(threads, KCR_THREAD_HASH_BITS);	/* struct kcr_parked, by task */
	unsigned int nr_queued;		/* threads whose work has not run yet */
	wait_queue_head_t arrived;	/* the requester waits here */
	wait_queue_head_t released;	/* threads of a restart wait here */
	bool parking;			/* members' new threads are stopped at birth */
	bool parked;			/* PARK succeeded, and no ADD since: all threads are at rest */
	bool held;			/* RELEASE (HOLD): some run on; only RELEASE is allowed */
	bool exec_seen;			/* a member called exec while parking */
	int fork_error;			/* -errno: a fork could not be followed */
	bool dead;			/* the owner closed it */
	u64 park_start_ns;
	struct list_head clients;	/* notified or restarted; see client.h */
	unsigned int nr_clients;	/* in that list, or being visited */
	struct kcr_notification *notification;	/* kmod/notify.c; NULL: no NOTIFY yet */
	u32 finish_code;		/* the first that a client passed to DONE … */
	pid_t finish_pid;		/* … and its PID, in the owner's PID namespace */
	struct kcr_restart *restart;	/* kmod/enter.c; NULL in a checkpoint */
	struct kcr_mover *mover;	/* kmod/pages.c; NULL: no pages were copied yet */
	struct kcr_guard *guard;	/* kmod/guard.c; NULL: none was wanted */
	struct kcr_holder *holder;	/* kmod/hold.c; NULL: no HOLD yet */
};

/*
 * A process that the job stops.  Lives until the job ends; one that has died is
 * removed when there are many and, like one that called exec, at the next PARK.
 */
struct kcr_member {
	struct list_head node;		/* job->processes */
	struct list_head threads;	/* struct kcr_parked, the leader first */
	struct kcr_job *job;
	struct task_struct *leader;	/* referenced */
	struct pid *pid;		/* of the process, referenced */
	struct mm_struct *mm;		/* mm_count reference (mmgrab) */
	struct mm_struct *snapshot;	/* mm_users reference, or NULL */
	struct kcr_fork_watch watch;
	bool shares_mm;			/* … with another member: e.g. a child of vfork() */
	bool torn;			/* a thread that rested was continued or began to exit */
	u32 flags;			/* KCR_PROCESS_FORKED */
	struct rcu_head rcu;		/* for the watch, see fork.h */
};

/*
 * Under job->lock or job->list_lock: members are removed under both, and may
 * be appended under list_lock alone, by a fork, but not while the job is parked.
 */
#define kcr_for_each_member(member, job)					\
	list_for_each_entry_rcu(member, &(job)->processes, node,		\
				lockdep_is_held(&(job)->lock) ||		\
				lockdep_is_held(&(job)->list_lock))

/* A new job of the calling process; ERR_PTR(-ENOMEM, -EDQUOT: see account.h). */
struct kcr_job *kcr_job_new(void);
struct kcr_job *kcr_job_get(struct kcr_job *job);
void kcr_job_put(struct kcr_job *job);
/* The owner has closed it: members run on, half-restored processes die.  May sleep. */
void kcr_job_end(struct kcr_job *job);
/* Waits until no job is left: after that no work of the module is queued or runs. */
void kcr_job_wait_none(void);

/* Removes members that have died, if there are many.  job->lock held. */
void kcr_job_sweep(struct kcr_job *job);
/* Likewise, as job->sweep. */
void kcr_job_sweep_work(struct work_struct *work);

/* The member with this PID in the caller's PID namespace, or NULL.  job->lock held. */
struct kcr_member *kcr_job_find(struct kcr_job *job, pid_t pid);
/* Is it still the program that was added, or has become of it, and may the caller trace it now? */
bool kcr_member_is_trusted(const struct kcr_member *member);

/*
 * The address space to read: the member's, or its snapshot (KCR_*_SNAPSHOT).
 * Returns an mm with a users reference (mmput it), or ERR_PTR(-ESRCH: no such
 * member or it died; -EINVAL: the job is not parked; -ENODATA: no snapshot).
 * job->lock held; may sleep.
 */
struct mm_struct *kcr_job_mm(struct kcr_job *job, pid_t pid, bool snapshot);

/* How many of its threads rest.  job->lock held, so that the list stays; may sleep. */
u32 kcr_member_resting(const struct kcr_member *member);

/*
 * Does a thread that does not rest use the member's memory, too?  Somebody who looks at it just now,
 * such as a reader of /proc/PID/maps, counts as one.  The caller has one users reference itself.
 * job->lock held; may sleep.
 */
bool kcr_member_shares_mm(const struct kcr_member *member);

/*
 * What a parked thread does for the requester, which may die meanwhile: so both
 * hold a reference to the call, which is embedded in an allocated object.
 */
struct kcr_call {
	struct kref ref;
	int (*fn)(struct kcr_call *call);
	void (*release)(struct kref *ref);	/* frees the containing object */
	int ret;
	struct completion done;
};

void kcr_call_init(struct kcr_call *call, int (*fn)(struct kcr_call *call),
		   void (*release)(struct kref *ref));
void kcr_call_put(struct kcr_call *call);

/*
 * Runs call->fn in the context of a parked thread of the member and returns
 * its result.  -EOPNOTSUPP: all its threads are in a group stop; -ESRCH: it
 * died; -EINTR: the caller was killed, the call may still run.  fn must not
 * return to user mode or sleep for ever.  job->lock held.
 */
int kcr_member_run(struct kcr_member *member, struct kcr_call *call);

/*
 * Takes job->lock for the owner of the job; -EPERM: the caller is not the owner;
 * -ECANCELED: the job has ended; -EINTR: the caller is dying.  May sleep.
 */
long kcr_job_lock(struct kcr_job *job);

/* Drops the copies of a snapshot; the members' threads may be running. snapshot.c */
void kcr_snapshot_end(struct kcr_job *job);
/* The owner has closed it: kills half-restored processes. restart.c */
void kcr_restart_abort(struct kcr_job *job);
/* Frees job->restart, with the job's last reference. restart.c */
void kcr_restart_free(struct kcr_job *job);
/* Frees job->mover, with the job's last reference. pages.c */
void kcr_mover_free(struct kcr_job *job);
/* An entered process's address space, for FILL, STORE and READ; as kcr_job_mm(). restart.c */
struct mm_struct *kcr_restart_mm(struct kcr_job *job, pid_t pid);

#endif /* KCR_JOB_H */
