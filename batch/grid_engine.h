/* SPDX-License-Identifier: GPL-2.0 */
/* What cr_batch asks of Grid Engine: operations of struct scheduler (scheduler.h). */
#ifndef KCR_BATCH_GRID_ENGINE_H
#define KCR_BATCH_GRID_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/* How long a run may be by its request and its queue; -1: as long as it likes, or not known. */
int64_t grid_engine_length(bool anew);

/*
 * ckpt_dir of the job's checkpoint environment, if the name of that begins with "kcr"; NULL: there
 * is none.
 */
const char *grid_engine_folder(void);

/* Is this job, or this task of an array, being deleted?  False if that is not known. */
bool grid_engine_is_deleted(void);

#endif /* KCR_BATCH_GRID_ENGINE_H */
