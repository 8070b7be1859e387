// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that expire while their process is described.  They run on while it
 * is stopped, and the queued signals are read before the timers: one that
 * expires in between would be saved neither with time left nor as a signal,
 * and a one-shot timer would be lost.  So the timers are also read before
 * the signals, and everything is read again if one has expired.  The process
 * arms none meanwhile, so this terminates.
 */
#include "checkpoint/internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "resource/attribute.h"

/*
 * The signal of a periodic timer is queued once, however often it expires:
 * reading once more gets it.
 */
#define PERIODIC_TRIES	2
#define QUEUEING_US	1000	/* more than the time from the expiry to the queued signal */

int expiry_begin(const struct process_probe *probe, struct expiry *e)
{
	e->timers = NULL;
	e->count = device_timers(probe->job, probe->pid, &e->timers);
	return e->count < 0 ? e->count : 0;
}

void expiry_end(struct expiry *e)
{
	free(e->timers);
}

/* The nth timer of p, if it is this one; both lists have the same order. */
static const Kcr__Timer *same(const Kcr__Process *p, size_t n, const struct kcr_timer *timer)
{
	return n < p->n_timer && p->timer[n]->kind == timer->kind &&
	       p->timer[n]->id == timer->id ? p->timer[n] : NULL;
}

/* Has one expired since they were first read?  *periodic: only periodic ones have. */
static bool has_expired(const struct expiry *e, const Kcr__Process *p, bool *periodic)
{
	bool expired = false;
	size_t n = 0;

	*periodic = true;
	for (int i = 0; i < e->count; i++) {
		const struct kcr_timer *timer = &e->timers[i];
		const Kcr__Timer *now = same(p, n, timer);
		uint64_t left = now ? now->remaining_ns : 0;

		n += now != NULL;
		if (!timer->remaining_ns || (left && left <= timer->remaining_ns))
			continue;
		expired = true;
		*periodic &= timer->interval_ns != 0;
	}
	return expired;
}

static void forget_signals(size_t *n, ProtobufCBinaryData **signals)
{
	for (size_t i = 0; i < *n; i++)
		free((*signals)[i].data);
	free(*signals);
	*signals = NULL;
	*n = 0;
}

static void forget(Kcr__Process *p)
{
	forget_signals(&p->n_pending, &p->pending);
	for (size_t i = 0; i < p->n_thread; i++)
		forget_signals(&p->thread[i]->n_pending, &p->thread[i]->pending);
	for (size_t i = 0; i < p->n_timer; i++)
		kcr__timer__free_unpacked(p->timer[i], NULL);
	free(p->timer);
	p->timer = NULL;
	p->n_timer = 0;
}

static int read_again(const struct process_probe *probe, Kcr__Process *p, struct expiry *e)
{
	int err;

	expiry_end(e);
	forget(p);
	usleep(QUEUEING_US);
	err = expiry_begin(probe, e);
	for (size_t i = 0; !err && i < p->n_thread; i++)
		err = attribute_pending.save_thread(probe, p->thread[i]);
	if (!err)
		err = attribute_pending.save(probe, p);
	return err ?: attribute_timer.save(probe, p);
}

int expiry_settle(const struct process_probe *probe, Kcr__Process *p, struct expiry *e)
{
	bool periodic;
	int err = 0;

	for (int try = 0; !err && has_expired(e, p, &periodic); try++) {
		if (periodic && try >= PERIODIC_TRIES)
			break;
		err = read_again(probe, p, e);
	}
	return err;
}
