/* SPDX-License-Identifier: GPL-2.0 */
/* Slurm, for the table of schedulers: operations of struct scheduler. */
#ifndef KCR_BATCH_SLURM_H
#define KCR_BATCH_SLURM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How long the allocation lasts, in s; -1: not known.  Unless it is to be asked `anew`, what the
 * job's environment says will do.
 */
int64_t slurm_seconds_left(bool anew);

/*
 * Has the job run again; it may be ended at once.  Or does nothing, as Slurm will do that when
 * the job has ended.  0 or -errno with a message; -ECANCELED: it is not for this process to do.
 */
int slurm_requeue(void);

/*
 * Is this a task of an array?  A job that was submitted by such a task has its variables, too: Slurm
 * is asked once, and where it does not answer the variables are believed.
 */
bool slurm_is_task(void);

#endif /* KCR_BATCH_SLURM_H */
