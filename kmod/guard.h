/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes of a restart that run before all their memory is there (KCR_RESUME_GUARD),
 * and those that they fork: they may not outlive the owner of the job.
 *
 * The list is job->guards, under job->list_lock; guards are appended by forks as well,
 * and removed under job->lock too.
 */
#ifndef KCR_GUARD_H
#define KCR_GUARD_H

#include <linux/types.h>

struct kcr_job;

/*
 * Guards all processes that have entered.  0 or -errno: none.  Before the first of them
 * runs; job->lock held, may sleep.
 */
int kcr_guard_begin(struct kcr_job *job);
/* From now on they may outlive the job.  False: none was guarded.  job->lock held. */
bool kcr_guard_end(struct kcr_job *job);
/* Kills all, waits until none of them uses its memory any more, and ends as above. */
void kcr_guard_kill(struct kcr_job *job);
/* Removes those whose processes have ended or called exec.  job->lock held. */
void kcr_guard_sweep(struct kcr_job *job);

#endif /* KCR_GUARD_H */
