// SPDX-License-Identifier: GPL-2.0
/* What prctl(2) has set of a stopped process and its threads, as only the module tells it. */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"
#include "report/report.h"

static int take_thread(const struct kcr_setting *from, Kcr__Thread *t)
{
	if (from->state & KCR_SETTING_NO_CPUID)
		return report_fail(-EOPNOTSUPP, "thread %d has forbidden itself the CPUID instruction "
				   "(ARCH_SET_CPUID), which cannot be saved", t->tid);
	if (t->sched) {
		t->sched->has_timer_slack_ns = true;
		t->sched->timer_slack_ns = from->timer_slack_ns;
	}
	return 0;
}

static void take_tracer(const struct kcr_settings *from, Kcr__Process *p)
{
	if (from->tracing == KCR_TRACER_OTHER)
		report_warn("process %d lets a process that is not saved trace it (PR_SET_PTRACER): "
			    "after a restart it does not", p->pid);
	if (from->tracing == KCR_TRACER_ANY || from->tracing == KCR_TRACER_ONE) {
		p->has_tracer = true;
		p->tracer = from->tracing == KCR_TRACER_ANY ? -1 : from->tracer;
	}
}

int describe_settings(const struct checkpoint *c, Kcr__Process *p)
{
	struct kcr_settings all;
	struct kcr_setting *list = NULL;
	int count = device_settings(c->attempt.job, p->pid, &all, &list), err = 0;

	if (count < 0)
		return count;
	for (int i = 0; !err && i < count; i++) {
		Kcr__Thread *t = describe_find_thread(p, list[i].tid, i);

		err = t ? take_thread(&list[i], t) : 0;
	}
	free(list);
	if (!err)
		take_tracer(&all, p);
	return err;
}
