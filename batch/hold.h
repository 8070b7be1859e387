/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A signal that ends a job often goes to all of its processes at once.  The module holds it
 * back from the program (KCR_IOC_HOLD in kcr(4)) as long as a save is under way or due;
 * otherwise for a moment only, in which cr_batch hears whether it got the same signal.
 */
#ifndef KCR_BATCH_HOLD_H
#define KCR_BATCH_HOLD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define HOLD_MAX_S	3600

struct hold {
	int job;			/* -1: nothing is held */
	uint64_t signals;		/* bit 0: signal 1 */
	unsigned int limit_ms;		/* of a save */
	uint64_t held;			/* those that were held back since a save was due */
};

/*
 * From now on those of `signals` that can be held are held back from all descendants of this
 * process; limit_s (HOLD_MAX_S at most) 0: none.  -errno with a message: they are not.
 */
int hold_begin(struct hold *h, const sigset_t *signals, unsigned int limit_s);
/* For a save: as long as it may take.  Without one: for a moment. */
void hold_set(struct hold *h, bool save);
/* Is this signal held back, so that the program does not hear of it before us? */
bool hold_covers(const struct hold *h, int signal);
/* Was this signal held back when a save began?  By now its time may be over. */
bool hold_was_needed(const struct hold *h, int signal);
/* The program gets what is held.  Was this signal? */
bool hold_deliver(const struct hold *h, int signal);
/* As hold_deliver(), and nothing is held any more. */
void hold_end(struct hold *h);

#endif /* KCR_BATCH_HOLD_H */
