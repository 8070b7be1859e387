// SPDX-License-Identifier: GPL-2.0
/* What prctl(2) has set of a stopped process and its threads, as only the module tells it. */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "device/device.h"
#include "report/report.h"

static uint32_t store_bypass(uint32_t state)
{
	if (state & KCR_SETTING_STORE_FORCED)
		return PR_SPEC_FORCE_DISABLE;
	if (state & KCR_SETTING_STORE_NOEXEC)
		return PR_SPEC_DISABLE_NOEXEC;
	return state & KCR_SETTING_STORE_OFF ? PR_SPEC_DISABLE : 0;
}

static uint32_t indirect_branch(uint32_t state)
{
	if (state & KCR_SETTING_BRANCH_FORCED)
		return PR_SPEC_FORCE_DISABLE;
	return state & KCR_SETTING_BRANCH_OFF ? PR_SPEC_DISABLE : 0;
}

static void take_speculation(const struct kcr_setting *from, Kcr__Thread *t)
{
	t->store_bypass = store_bypass(from->state);
	t->has_store_bypass = t->store_bypass;
	t->indirect_branch = indirect_branch(from->state);
	t->has_indirect_branch = t->indirect_branch;
	t->has_cache_flush = from->state & KCR_SETTING_FLUSH;
	t->cache_flush = t->has_cache_flush ? PR_SPEC_ENABLE : 0;
}

static int take_dispatch(const struct kcr_dispatch *from, Kcr__Thread *t)
{
	if (!from->on)
		return 0;
	t->dispatch = malloc(sizeof(*t->dispatch));
	if (!t->dispatch)
		return report_errno(-ENOMEM, "thread %d", t->tid);
	kcr__dispatch__init(t->dispatch);
	t->dispatch->selector = from->selector;
	t->dispatch->offset = from->offset;
	t->dispatch->length = from->length;
	return 0;
}

static int take_thread(const struct kcr_setting *from, Kcr__Thread *t)
{
	if (from->state & KCR_SETTING_NO_CPUID)
		return report_fail(-EOPNOTSUPP, "thread %d has forbidden itself the CPUID instruction "
				   "(ARCH_SET_CPUID), which cannot be saved", t->tid);
	if (t->sched) {
		t->sched->has_timer_slack_ns = true;
		t->sched->timer_slack_ns = from->timer_slack_ns;
	}
	take_speculation(from, t);
	return take_dispatch(&from->dispatch, t);
}

static void take_process(const struct kcr_settings *from, Kcr__Process *p)
{
	p->has_merge = p->merge = from->state & KCR_SETTINGS_MERGE;
	p->has_thp_advised = p->thp_advised = from->state & KCR_SETTINGS_THP_ADVISED;
	p->has_amx = p->amx = from->state & KCR_SETTINGS_AMX;
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
	if (!err) {
		take_process(&all, p);
		take_tracer(&all, p);
	}
	return err;
}
