// SPDX-License-Identifier: GPL-2.0
/*
 * Smaller settings of a process: those of prctl(2), the core dump filter and
 * the out-of-memory score.  After the credentials, whose change clears the
 * parent-death signal of a thread, and makes its process not dumpable: dumpable
 * is set by the kernel module when all threads are done (restart/thread.c).
 */
#include "resource/attribute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kcr.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/thread.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/file.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#endif
#ifndef PR_THP_DISABLE_EXCEPT_ADVISED
#define PR_THP_DISABLE_EXCEPT_ADVISED	(1 << 1)
#endif

#define PARENT_MS	300000u		/* time-out for a failed restart */

static int check_shadow_stack(pid_t tid, const char *status)
{
	const char *features = status_value(status, ARCH_STATUS_FEATURES);
	size_t length = features ? strcspn(features, "\n") : 0;

	if (!length ||
	    !memmem(features, length, ARCH_SHADOW_STACK, strlen(ARCH_SHADOW_STACK)))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has a shadow stack: such a program cannot "
			   "be checkpointed", tid);
}

/* With LAM an address that the program has may not be the one of its mapping. */
static int check_tags(pid_t pid, const char *status)
{
	const char *mask = status_value(status, ARCH_STATUS_UNTAG_MASK);

	if (!mask || strtoull(mask, NULL, 16) == UINT64_MAX)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has tags in its addresses "
			   "(ARCH_ENABLE_TAGGED_ADDR), which cannot be saved", pid);
}

static int prctl_check(const struct process_probe *probe)
{
	int err = check_shadow_stack(probe->pid, probe->status);

	return err ? err : check_tags(probe->pid, probe->status);
}

static int prctl_save(const struct process_probe *probe, Kcr__Process *p)
{
	char text[32];
	ssize_t got;
	int err = prctl_check(probe);

	if (err)
		return err;
	p->has_dumpable = p->has_subreaper = p->has_thp_disable = true;
	p->dumpable = probe->info->dumpable;
	p->subreaper = probe->info->flags & KCR_PROCESS_SUBREAPER;
	p->thp_disable = !status_number(probe->status, "THP_enabled", 10, 1);

	got = proc_read(probe->thread, "oom_score_adj", text, sizeof(text));
	if (got < 0)
		return report_errno(got, "process %d: cannot read its oom_score_adj", probe->pid);
	p->has_oom_score_adj = true;
	p->oom_score_adj = strtol(text, NULL, 10);

	got = proc_read(probe->thread, "coredump_filter", text, sizeof(text));
	if (got > 0) {		/* does not exist without CONFIG_ELF_CORE */
		p->has_coredump_filter = true;
		p->coredump_filter = strtoul(text, NULL, 16);
	}
	return 0;
}

static int prctl_save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	const char *status = probe_thread_status(probe, t->tid);

	return status ? check_shadow_stack(t->tid, status) : -EIO;
}

/* Writes /proc/self/NAME unless it has the value already. */
static int set_file(const Kcr__Process *p, const char *name, int base, long value, bool must)
{
	char text[32];
	ssize_t err = proc_read(PROC_SELF, name, text, sizeof(text));

	if (err > 0 && strtol(text, NULL, base) == value)
		return 0;
	snprintf(text, sizeof(text), base == 16 ? "0x%lx" : "%ld", value);
	err = attribute_write_self(name, text);
	if (!err)
		return 0;
	if (must)
		return report_errno(err, "process %d: cannot set %s to %s", p->pid, name, text);
	report_warn("process %d: not allowed to set its %s to %s", p->pid, name, text);
	return 0;
}

/* Where Yama does not restrict who may trace it, all may. */
static void set_tracer(const struct rebuild *r, const Kcr__Process *p)
{
	long tracer = p->tracer < 0 ? p->tracer : rebuild_pid(r, p->tracer);

	if (tracer && !prctl(PR_SET_PTRACER, tracer, 0, 0, 0))
		return;
	if (!access("/proc/sys/kernel/yama", F_OK))
		report_warn("process %d cannot let process %d trace it (PR_SET_PTRACER)", p->pid,
			    p->tracer);
}

static int set_memory(const Kcr__Process *p)
{
	unsigned long except = p->thp_advised ? PR_THP_DISABLE_EXCEPT_ADVISED : 0;
	unsigned long off = p->thp_disable || except;

	if (p->has_thp_disable && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != (int)(off | except) &&
	    prctl(PR_SET_THP_DISABLE, off, except, 0, 0) < 0) {
		if (!except)
			return report_errno(-errno, "process %d: transparent huge pages", p->pid);
		report_warn("process %d gets transparent huge pages for which it has not asked: "
			    "this kernel has no PR_THP_DISABLE_EXCEPT_ADVISED", p->pid);
	}
	if (p->merge && prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) < 0)
		report_warn("process %d: new memory of it is not merged with equal pages "
			    "(PR_SET_MEMORY_MERGE): %s", p->pid, strerror(errno));
	return 0;
}

static int prctl_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	if (p->has_oom_score_adj)
		err = set_file(p, "oom_score_adj", 10, p->oom_score_adj, false);
	if (!err && p->has_coredump_filter)
		err = set_file(p, "coredump_filter", 16, p->coredump_filter, true);
	if (err)
		return err;
	if (prctl(PR_SET_CHILD_SUBREAPER, p->has_subreaper && p->subreaper, 0, 0, 0) < 0)
		return report_errno(-errno, "process %d: child subreaper", p->pid);
	if (p->has_tracer)
		set_tracer(r, p);
	if (p->amx)
		err = arch_request_amx();
	if (err)
		return report_errno(err, "process %d may use AMX tiles, which it cannot here",
				    p->pid);
	return set_memory(p);
}

/*
 * The signal is sent when the thread of the parent that created us ends: in a
 * restart its leader.  If that is to end in the restart, it must do so first.
 */
static void wait_for_parent(const struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	const Kcr__Process *parent = context_process(r->context, p->ppid);
	struct kcr_wait wait = { .size = sizeof(wait), .timeout_ms = PARENT_MS };

	if (!parent || !parent->has_leader_exit_code)
		return;
	wait.pid = rebuilt_tid(r, parent, parent->pid);
	script_call(s, "waiting for the parent's first thread to end", SYS_ioctl, r->job,
		    KCR_IOC_WAIT, script_data(s, &wait, sizeof(wait)), 0, 0, 0);
}

/* The signal for the end of its parent; 0: none.  The end of cr_restart would say nothing. */
static uint32_t death_signal(const struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t)
{
	uint32_t signal = t->has_pdeath_signal ? t->pdeath_signal : 0;

	if (!signal || !r->leaves || context_process(r->context, p->ppid))
		return signal;
	report_warn("thread %d: its signal %u for the end of its parent (PR_SET_PDEATHSIG) is left out: "
		    "that is not saved, and cr_restart ends at once", t->tid, signal);
	return 0;
}

static int prctl_script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			       struct script *s)
{
	uint32_t signal = death_signal(r, p, t);

	if (signal)
		wait_for_parent(r, p, s);
	script_call(s, "prctl(PR_SET_PDEATHSIG)", SYS_prctl, PR_SET_PDEATHSIG, signal, 0, 0, 0, 0);
	return 0;
}

/* What a process in another's memory must set by itself, as it does not exist for prctl_rebuild(). */
static int prctl_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	long tracer = p->tracer < 0 ? p->tracer : rebuild_pid(r, p->tracer);

	if (!process_is_sharer(p))
		return 0;
	script_call(s, "prctl(PR_SET_CHILD_SUBREAPER)", SYS_prctl, PR_SET_CHILD_SUBREAPER,
		    p->has_subreaper && p->subreaper, 0, 0, 0, 0);
	if (p->has_tracer && tracer)
		script_call_try(s, "prctl(PR_SET_PTRACER)", SYS_prctl, PR_SET_PTRACER, tracer, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_prctl = {
	.name = "prctl",
	.check = prctl_check,
	.save = prctl_save,
	.save_thread = prctl_save_thread,
	.rebuild = prctl_rebuild,
	.script_thread = prctl_script_thread,
	.script_last = prctl_script_last,
};
