/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job: one open file of /dev/kcr, the processes it holds and what it made.
 * Read this first; kmod/park.c stops the processes, kmod/fork.c catches forks,
 * kmod/thread.c reads threads, kmod/pages.c moves memory, kmod/snapshot.c
 * copies address spaces, kmod/notify.c tells clients (kmod/client.c),
 * kmod/clone.c, kmod/enter.c and kmod/restart.c restart.
 *
 * Locks: job->lock (mutex) serialises the ioctls of a job, except CLONE, ENTER
 * and WAIT, which are called by its half-made processes.  job->list_lock (spin)
 * guards the lists and the counters; it is also taken by the fork probe and
 * by arriving threads, and nests outside sighand->siglock.
 */
#ifndef KCR_JOB_H
#define KCR_JOB_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include "fork.h"
#include "uapi/linux/kcr.h"

struct file;
struct mm_struct;
struct kcr_notification;
struct kcr_restart;

#define KCR_THREAD_HASH_BITS	8

struct kcr_job {
	struct kref ref;		/* the open file and every queued work */
	struct mutex lock;
	spinlock_t list_lock;
	pid_t owner_tgid;		/* its first close ends the job */
	struct pid *owner;		/* the same, referenced */
	void *owner_files;		/* its descriptor table; only compared */
	struct list_head processes;	/* struct kcr_member, in the order of joining */
	DECLARE_HASHTABLE(threads, KCR_THREAD_HASH_BITS);	/* struct kcr_parked, by task */
	unsigned int nr_queued;		/* threads whose work has not run yet */
	wait_queue_head_t arrived;	/* the requester waits here */
	wait_queue_head_t released;	/* threads of a restart wait here */
	bool parking;			/* members' new threads are stopped at birth */
	bool parked;			/* PARK succeeded, not yet released */
	bool exec_seen;			/* a member called exec while parking */
	bool fork_lost;			/* no memory to follow a fork */
	bool dead;			/* the owner closed it */
	u64 park_start_ns;
	struct list_head clients;	/* told by NOTIFY or restarted; see client.h */
	struct kcr_notification *notification;	/* kmod/notify.c; NULL: no NOTIFY yet */
	u32 finish_code;		/* the first that a client gave DONE … */
	pid_t finish_pid;		/* … and which, in the owner's pid namespace */
	struct kcr_restart *restart;	/* kmod/enter.c; NULL in a checkpoint */
};

/*
 * A process that the job stops.  Lives until the job is freed; one that died
 * or called exec leaves at the next PARK.
 */
struct kcr_member {
	struct list_head node;		/* job->processes */
	struct list_head registered;	/* all members of all jobs */
	struct list_head threads;	/* struct kcr_parked, the leader first */
	struct kcr_job *job;
	struct task_struct *leader;	/* referenced */
	struct pid *pid;		/* of the process, referenced */
	struct mm_struct *mm;		/* mm_count reference (mmgrab) */
	struct mm_struct *snapshot;	/* mm_users reference, or NULL */
	struct kcr_fork_watch watch;
	bool continued;			/* a stopped thread of it ran on while parked */
	u32 flags;			/* KCR_PROCESS_FORKED */
};

struct kcr_job *kcr_job_new(void);
struct kcr_job *kcr_job_get(struct kcr_job *job);
void kcr_job_put(struct kcr_job *job);
/* The owner went: everything runs on, what is half made dies.  May sleep. */
void kcr_job_end(struct kcr_job *job);
/* Waits until no job is left: nothing of the module is queued or runs any more. */
void kcr_job_wait_none(void);

/* The member with this number in the caller's pid namespace, or NULL. job->lock held. */
struct kcr_member *kcr_job_find(struct kcr_job *job, pid_t pid);

/*
 * The address space to read: the member's, or its snapshot (KCR_*_SNAPSHOT).
 * Returns an mm with a users reference (mmput it), or ERR_PTR(-ESRCH: no such
 * member or it died; -EINVAL: the job is not parked; -ENODATA: no snapshot).
 * job->lock held; may sleep.
 */
struct mm_struct *kcr_job_mm(struct kcr_job *job, pid_t pid, bool snapshot);

/*
 * Runs fn(arg) in the context of a parked thread of the member and returns
 * its result.  -EOPNOTSUPP: all its threads are in a group stop; -ESRCH: it
 * died.  fn must not return to user mode or sleep for ever.  job->lock held.
 */
int kcr_member_run(struct kcr_member *member, int (*fn)(void *arg), void *arg);

/* ---- ioctls, one function each; `argp` is the user's pointer ------------- */
long kcr_ioc_info(struct kcr_job *job, void __user *argp);		/* main.c */
long kcr_ioc_add(struct kcr_job *job, void __user *argp);		/* member.c */
long kcr_ioc_list(struct kcr_job *job, void __user *argp);		/* member.c */
long kcr_ioc_park(struct kcr_job *job, void __user *argp);		/* park.c */
long kcr_ioc_release(struct kcr_job *job, void __user *argp);		/* park.c */
long kcr_ioc_threads(struct kcr_job *job, void __user *argp);		/* thread.c */
long kcr_ioc_signals(struct kcr_job *job, void __user *argp);		/* signal.c */
long kcr_ioc_sigactions(struct kcr_job *job, void __user *argp);	/* signal.c */
long kcr_ioc_timers(struct kcr_job *job, void __user *argp);		/* timer.c */
long kcr_ioc_mm(struct kcr_job *job, void __user *argp);		/* mm.c */
long kcr_ioc_vmas(struct kcr_job *job, void __user *argp);		/* vma.c */
long kcr_ioc_mapped_file(struct kcr_job *job, void __user *argp);	/* vma.c */
long kcr_ioc_descriptor(struct kcr_job *job, void __user *argp);	/* descriptor.c */
long kcr_ioc_scan(struct kcr_job *job, void __user *argp);		/* scan.c */
long kcr_ioc_pages(struct kcr_job *job, unsigned int cmd, void __user *argp);	/* pages.c */
long kcr_ioc_snapshot(struct kcr_job *job, void __user *argp);		/* snapshot.c */
long kcr_ioc_clone(struct kcr_job *job, void __user *argp);		/* clone.c */
long kcr_ioc_enter(struct kcr_job *job, void __user *argp);		/* enter.c */
long kcr_ioc_wait(struct kcr_job *job, void __user *argp);		/* restart.c */
long kcr_ioc_resume(struct kcr_job *job, void __user *argp);		/* restart.c */

long kcr_ioc_client(struct kcr_job *job, void __user *argp);		/* client.c */
long kcr_ioc_notify(struct kcr_job *job, void __user *argp);		/* notify.c */
long kcr_ioc_cancel(struct kcr_job *job, void __user *argp);		/* notify.c */
long kcr_ioc_finish(struct kcr_job *job, void __user *argp);		/* notify.c */

/* Drops what a snapshot made; the members' threads may be running. snapshot.c */
void kcr_snapshot_end(struct kcr_job *job);
/* The owner went: kills what is half made. restart.c */
void kcr_restart_abort(struct kcr_job *job);
/* Frees job->restart, at the last reference. restart.c */
void kcr_restart_free(struct kcr_job *job);
/* An entered process's address space, for FILL and STORE; as kcr_job_mm(). restart.c */
struct mm_struct *kcr_restart_mm(struct kcr_job *job, pid_t pid);

/*
 * Copies a request in, checking size and flags: -EFAULT, -EINVAL or 0.
 * `size` must be the first member and `flags` the second (both __u32).
 */
int kcr_request_get(void *request, size_t size, u32 known_flags, const void __user *argp);

#endif /* KCR_JOB_H */
