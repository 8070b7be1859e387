/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Has bytes go on at no more than a given rate: a token bucket, by CLOCK_MONOTONIC.  Time in which
 * less goes on is made up for, up to 20 ms of it.
 */
#ifndef KCR_IMAGE_LIMITER_H
#define KCR_IMAGE_LIMITER_H

#include <stdint.h>

struct limiter {
	uint64_t rate;			/* bytes per second; 0: no limit */
	uint64_t due_ns;		/* until then all that went on so far takes, at that rate */
};

/* As of `now_ns`, `bytes` have gone on: when may the next ones? */
uint64_t limiter_due(struct limiter *l, uint64_t bytes, uint64_t now_ns);
/* `bytes` have gone on: waits until the next ones may. */
void limiter_wait(struct limiter *l, uint64_t bytes);

#endif /* KCR_IMAGE_LIMITER_H */
