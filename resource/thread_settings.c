// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a thread that only the kernel module tells: PR_SET_TSC, PR_MCE_KILL and
 * PR_SET_IO_FLUSHER, which checkpoint/thread.c takes from it.
 */
#include "resource/attribute.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER	57
#endif

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
