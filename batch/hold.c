// SPDX-License-Identifier: GPL-2.0
/* Holding signals back; see hold.h. */
#include "batch/hold.h"

#include <errno.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

#define MOMENT_MS	2000

_Static_assert(HOLD_MAX_S * 1000 == KCR_HOLD_MAX_MS, "the module's limit");

static uint64_t holdable(const sigset_t *signals)
{
	uint64_t set = 0;

	for (int signal = 1; signal <= 64; signal++)
		if (sigismember(signals, signal) == 1)
			set |= 1ull << (signal - 1);
	return set & KCR_HOLD_SIGNALS;
}

/* Without the module there are no saves either, which is said elsewhere. */
static int open_job(void)
{
	struct kcr_info info;
	int job = device_open(&info);

	if (job < 0 || info.features & KCR_FEATURE_HOLD)
		return job;
	close(job);
	return report_fail(-EOPNOTSUPP, "this kernel has no way to hold signals back");
}

int hold_begin(struct hold *h, const sigset_t *signals, unsigned int limit_s)
{
	int err;

	*h = (struct hold){ .job = -1, .signals = holdable(signals), .limit_ms = limit_s * 1000 };
	if (!h->signals || !limit_s)
		return 0;
	h->job = open_job();
	if (h->job < 0)
		return h->job;
	err = device_hold(h->job, h->signals, MOMENT_MS, NULL);
	if (err)
		hold_end(h);
	return err;
}

void hold_set(struct hold *h, bool save)
{
	uint64_t held = 0;

	if (h->job < 0)
		return;
	device_hold(h->job, h->signals, save ? h->limit_ms : MOMENT_MS, &held);
	h->held = save ? h->held | held : 0;
}

bool hold_covers(const struct hold *h, int signal)
{
	return h->job >= 0 && h->signals >> (signal - 1) & 1;
}

bool hold_was_needed(const struct hold *h, int signal)
{
	return h->held >> (signal - 1) & 1;
}

bool hold_deliver(const struct hold *h, int signal)
{
	uint64_t held = 0;

	if (h->job < 0 || device_hold(h->job, h->signals, 0, &held))
		return false;
	return held >> (signal - 1) & 1;
}

void hold_end(struct hold *h)
{
	if (h->job >= 0)
		close(h->job);
	h->job = -1;
}
