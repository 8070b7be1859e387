/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes that a restart job creates: kmod/clone.c adds them,
 * kmod/enter.c collects their threads and releases them.
 *
 * job->list_lock guards everything here.  A half-restored process is registered
 * before it is woken for the first time, so that kcr_restart_abort() misses
 * none, and stays until the job is freed, so that a walk may drop the lock;
 * struct pid is referenced, so that a reused PID is never hit.
 */
#ifndef KCR_RESTART_H
#define KCR_RESTART_H

#include <linux/list.h>
#include <linux/pid.h>
#include <linux/types.h>

#include "job.h"

struct kcr_half {
	struct list_head node;		/* restart->processes */
	struct pid *pid;		/* of the group leader, referenced */
	u64 exec_id;			/* its self_exec_id, which exec changes */
	/* An mm_count reference: with CLONE_VM from birth on, else once a thread entered. */
	struct mm_struct *mm;
	struct file *exe;		/* becomes /proc/PID/exe, or NULL */
	unsigned long unmap_start;	/* the code that called ENTER … */
	unsigned long unmap_len;	/* … 0: stays mapped */
	unsigned int nr_threads;	/* expected; 0: none entered yet */
	unsigned int entered;
	bool leaderless;		/* KCR_ENTER_LEADERLESS: the leader ends */
	bool stopped;			/* KCR_ENTER_STOPPED */
	bool stood;			/* has stopped again, and may have been continued since */
	bool hushed;			/* SA_NOCLDSTOP was added to its SIGCHLD */
	u32 stop_signal;		/* what wait(2) is to report */
	s32 dumpable;			/* from RESUME on; -1: unchanged */
	bool complete;			/* all entered */
	/* All that share its mm are complete, and the old code is unmapped. */
	bool ready;
};

struct kcr_restart {
	struct list_head processes;	/* struct kcr_half */
	unsigned int nr_threads;	/* of all ready processes */
	bool stopping;			/* those that are to stop may go */
	bool resumed;
	bool holding;			/* … except those that entered as HELD */
	bool aborted;
};

/*
 * The job's restart state, created by the first call.  ERR_PTR(-EINVAL: it is a
 * checkpoint job; -ECANCELED: its owner has closed it or it is resumed already;
 * -ENOMEM).  May sleep.
 */
struct kcr_restart *kcr_restart_get(struct kcr_job *job);

/*
 * A zeroed entry for the job's list, charged to the job's account.
 * ERR_PTR(-ENOMEM, -EDQUOT: see account.h).  May sleep.
 */
struct kcr_half *kcr_half_new(struct kcr_job *job);
/* Frees it with all that it holds; NULL: does nothing. */
void kcr_half_drop(struct kcr_job *job, struct kcr_half *half);

/*
 * Will a thread that runs this work still get its saved registers, by a work that
 * was queued before?  Its present ones are those of the code that rebuilt it.
 */
bool kcr_enter_follows(const struct callback_head *work);

#endif /* KCR_RESTART_H */
