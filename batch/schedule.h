/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When to save.  No clock is read and nothing is done here: times are handed in, in ns of
 * CLOCK_MONOTONIC, and the answer is what is due.
 */
#ifndef KCR_BATCH_SCHEDULE_H
#define KCR_BATCH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_NEVER	UINT64_MAX

struct schedule {
	uint64_t interval_ns;		/* between two saves; 0: none, or by mttf_ns */
	uint64_t mttf_ns;		/* mean time to failure: the interval follows from it; 0 */
	bool leave_each;		/* a save by the interval ends the program */
	uint64_t end_ns;		/* when to save and leave; SCHEDULE_NEVER */

	/* Kept by the functions below. */
	uint64_t next_ns;		/* of the interval */
	uint64_t retry_ns;		/* a save has failed: not before this */
	unsigned int failures;		/* in a row */
	bool save, leave;		/* asked for by signals */
};

enum schedule_action { SCHEDULE_NONE, SCHEDULE_SAVE, SCHEDULE_LEAVE };

/* The program begins to run at `now`; the fields of the first part are set. */
void schedule_begin(struct schedule *s, uint64_t now);

/* What is due; *wait_ns: for how long nothing will be, if it is SCHEDULE_NONE. */
enum schedule_action schedule_due(const struct schedule *s, uint64_t now, uint64_t *wait_ns);

/* A save has been completed at `now`, and took that long. */
void schedule_saved(struct schedule *s, uint64_t now, uint64_t cost_ns);

/*
 * A save has failed at `now`: it is tried again after 5 s, then 10, 20, 40, 60 s, before
 * the next time by the interval as well.
 */
void schedule_failed(struct schedule *s, uint64_t now, enum schedule_action action);

#endif /* KCR_BATCH_SCHEDULE_H */
