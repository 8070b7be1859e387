// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a thread that only the kernel module tells: PR_SET_TSC, PR_MCE_KILL and
 * PR_SET_IO_FLUSHER, which checkpoint/thread.c takes from it; PR_SET_SPECULATION_CTRL, which
 * checkpoint/settings.c takes.
 */
#include "resource/attribute.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"

#ifndef PR_SPEC_L1D_FLUSH
#define PR_SPEC_L1D_FLUSH	2
#endif
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER	57
#endif

/* Nothing is lost where it does no harm, or is off for all. */
static bool is_harmless(int now)
{
	return now == PR_SPEC_NOT_AFFECTED || (now > 0 && !(now & PR_SPEC_ENABLE));
}

static void script_speculation(struct script *s, const Kcr__Thread *t, const char *name,
			       unsigned long what, uint32_t value)
{
	int now = prctl(PR_GET_SPECULATION_CTRL, what, 0, 0, 0);

	if (!value)
		return;
	if (now > 0 && now & PR_SPEC_PRCTL)
		script_call(s, "prctl(PR_SET_SPECULATION_CTRL)", SYS_prctl, PR_SET_SPECULATION_CTRL,
			    what, value, 0, 0, 0);
	else if (!is_harmless(now))
		report_warn("thread %d: %s cannot be set here (PR_SET_SPECULATION_CTRL)", t->tid,
			    name);
}

static int script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			 struct script *s)
{
	(void)r;
	(void)p;
	if (t->has_tsc)
		script_call(s, "prctl(PR_SET_TSC)", SYS_prctl, PR_SET_TSC, t->tsc, 0, 0, 0, 0);
	if (t->has_mce_kill)
		script_call(s, "prctl(PR_MCE_KILL)", SYS_prctl, PR_MCE_KILL, PR_MCE_KILL_SET,
			    t->mce_kill, 0, 0, 0);
	script_speculation(s, t, "PR_SPEC_STORE_BYPASS", PR_SPEC_STORE_BYPASS, t->store_bypass);
	script_speculation(s, t, "PR_SPEC_INDIRECT_BRANCH", PR_SPEC_INDIRECT_BRANCH,
			   t->indirect_branch);
	script_speculation(s, t, "PR_SPEC_L1D_FLUSH", PR_SPEC_L1D_FLUSH, t->cache_flush);
	if (!t->io_flusher)
		return 0;
	if (have_capability(CAP_SYS_RESOURCE))
		script_call(s, "prctl(PR_SET_IO_FLUSHER)", SYS_prctl, PR_SET_IO_FLUSHER, 1,
			    0, 0, 0, 0);
	else
		report_warn("thread %d is not made one that writes out memory (PR_SET_IO_FLUSHER), "
			    "which takes CAP_SYS_RESOURCE", t->tid);
	return 0;
}

const struct attribute attribute_thread_settings = {
	.name = "settings of threads",
	.script_thread = script_thread,
};
