/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes of a restart whose memory is still being loaded (KCR_RESUME_GUARD): they, and
 * what they fork, are killed if the job ends before, as nobody would give them the rest.
 */
#ifndef KCR_GUARD_H
#define KCR_GUARD_H

#include <linux/types.h>

struct kcr_job;

/* Can this kernel load memory on demand while a program's threads change its mappings? */
bool kcr_guard_works(void);

/*
 * Guards the processes of job->restart, which all sleep in ENTER, from now on.  0, also if they
 * are guarded; -EBUSY: another job has one of them; -ENOMEM; -EDQUOT: see account.h.  After an
 * error none is.  job->lock held; may sleep.
 */
int kcr_guard_begin(struct kcr_job *job);
/* All is loaded: they are on their own.  False: they were not guarded.  job->lock held. */
bool kcr_guard_end(struct kcr_job *job);
/* The job ends: kills those that are still guarded.  job->lock held. */
void kcr_guard_kill(struct kcr_job *job);
/* With the job's last reference. */
void kcr_guard_free(struct kcr_job *job);

#endif /* KCR_GUARD_H */
