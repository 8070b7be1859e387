// SPDX-License-Identifier: GPL-2.0
/* See limiter.h. */
#include "image/limiter.h"

#include <errno.h>
#include <time.h>

#include "proc/clock.h"

#define SECOND		1000000000ull
#define CREDIT_NS	(SECOND / 50)

uint64_t limiter_due(struct limiter *l, uint64_t bytes, uint64_t now_ns)
{
	if (!l->rate)
		return now_ns;
	if (l->due_ns + CREDIT_NS < now_ns)
		l->due_ns = now_ns - CREDIT_NS;
	l->due_ns += bytes / l->rate * SECOND + bytes % l->rate * (double)SECOND / l->rate;
	return l->due_ns;
}

void limiter_wait(struct limiter *l, uint64_t bytes)
{
	uint64_t due_ns = l->rate ? limiter_due(l, bytes, now_ns()) : 0;
	const struct timespec due = { due_ns / SECOND, due_ns % SECOND };

	while (due_ns && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		;
}
