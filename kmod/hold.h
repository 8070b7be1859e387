/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signals that are held back from the descendants of a job's owner (HOLD): what ends a
 * batch job reaches its programs and their supervisor at once, and the supervisor wants to
 * save the programs first.
 */
#ifndef KCR_HOLD_H
#define KCR_HOLD_H

#include <linux/types.h>

struct kcr_job;

/* Could signals be held on this kernel?  Said by a look at its symbols; nothing is patched. */
bool kcr_hold_works(void);

/* The job ends: what is held is delivered.  job->lock held; may sleep. */
void kcr_hold_end(struct kcr_job *job);

/* No job is left. */
void kcr_hold_exit(void);

#endif /* KCR_HOLD_H */
