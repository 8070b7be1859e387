/* SPDX-License-Identifier: GPL-2.0 */
/* When the allocation ends, as far as its scheduler tells, and the save before that. */
#ifndef KCR_BATCH_DEADLINE_H
#define KCR_BATCH_DEADLINE_H

#include <stdint.h>

#include "batch/run.h"

/* Sets schedule.end_ns at the time `now`, after a line in the log. */
void deadline_begin(struct run *r, uint64_t now);

/*
 * Asks again if that is due: a scheduler that did not answer, later and later, and one that did
 * shortly before the save, as it may have given the job more time.
 */
void deadline_check(struct run *r, uint64_t now);

/* For how long nothing is due, if it is wait_ns without that. */
uint64_t deadline_wait(const struct run *r, uint64_t now, uint64_t wait_ns);

#endif /* KCR_BATCH_DEADLINE_H */
