/* SPDX-License-Identifier: GPL-2.0 */
/* cr_batch --clean: what a job that its scheduler deletes has left. */
#ifndef KCR_BATCH_CLEAN_H
#define KCR_BATCH_CLEAN_H

#include "batch/options.h"

/*
 * If this job is being deleted, removes its files, and the folder if it is empty then; nothing
 * if a cr_batch still works for the job.  0, or -errno with a message.
 */
int clean_deleted(const struct options *o);

#endif /* KCR_BATCH_CLEAN_H */
