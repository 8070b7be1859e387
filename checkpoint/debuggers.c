// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that are debugged, or debug others: refused, or left out; of a tree with all their
 * descendants, which would come back as orphans.
 */
#include "checkpoint/internal.h"

#include "proc/proc.h"
#include "proc/status.h"
#include "report/code.h"
#include "report/report.h"

bool is_below_skipped(const struct checkpoint *c, pid_t pid)
{
	const struct scope_process *p = NULL;

	if (c->skipped.count)
		p = scope_find(&c->attempt.scope, pid);
	while (p && !pid_list_has(&c->skipped, p->pid))
		p = scope_find(&c->attempt.scope, p->ppid);
	return p;
}

static int skip(struct checkpoint *c, pid_t pid)
{
	int err = c->options->scope == CHECKPOINT_TREE ? pid_list_add(&c->skipped, pid) : 0;

	return err ? err : exclude(c, pid, "it is being debugged, or debugs another");
}

/* Applies the policy to a tracee or tracer. */
static int apply_policy(struct checkpoint *c, enum checkpoint_ptrace policy,
			const struct scope_process *p, int err, const char *why)
{
	if (!p || policy == CHECKPOINT_PTRACE_ALLOW || is_excluded(c, p->pid) ||
	    is_below_skipped(c, p->pid))
		return 0;
	if (policy == CHECKPOINT_PTRACE_SKIP)
		return skip(c, p->pid);
	return report_fail(err, "process %d %s", p->pid, why);
}

static int check_tracer(struct checkpoint *c, pid_t tracer)
{
	return apply_policy(c, c->options->tracer, scope_find(&c->attempt.scope, tracer), -CR_EPTRACER,
			    "debugs another process: end that, or see --ptracer-skip");
}

static int check_ptrace(void *arg, const struct scope_process *p)
{
	struct checkpoint *c = arg;
	const struct scope_process *inside = scope_find(&c->attempt.scope, p->pid);
	char status[2048];
	pid_t tracer;
	int err = 0;

	if (p->kernel_thread || p->zombie ||
	    proc_read(p->thread, "status", status, sizeof(status)) <= 0)
		return 0;
	if (inside)
		c->expected_bytes += (status_number(status, "RssAnon", 10, 0) +
				      status_number(status, "VmSwap", 10, 0)) << 10;
	tracer = status_number(status, "TracerPid", 10, 0);
	if (!tracer)
		return 0;
	/* One that is left out mostly takes what it debugs along. */
	if (c->options->tracer == CHECKPOINT_PTRACE_SKIP)
		err = check_tracer(c, tracer);
	if (!err)
		err = apply_policy(c, c->options->traced, inside, -CR_EPTRACED,
				   "is being debugged: detach the debugger, or see --ptraced-skip");
	return err ? err : check_tracer(c, tracer);
}

/*
 * Finding members that debug processes outside the scope takes a scan of all of
 * /proc.  That is needed to exclude them, or to refuse the request of a program at
 * once; otherwise it is enough that the module reports them when they are stopped.
 */
int check_debuggers(struct checkpoint *c)
{
	const struct scope *scope = &c->attempt.scope;
	bool left = false;
	int err = 0;

	if (c->options->tracer == CHECKPOINT_PTRACE_SKIP || c->options->requester)
		err = scope_each(check_ptrace, c);
	else
		for (size_t i = 0; !err && i < scope->count; i++)
			err = check_ptrace(c, &scope->process[i]);
	for (size_t i = 0; err >= 0 && i < scope->count; i++) {
		if (scope->process[i].zombie)
			continue;	/* goes with its parent */
		err = leave_out(c, scope->process[i].pid);
		left |= !err;
	}
	if (err < 0)
		return err;
	return left ? 0 : stop_nobody(c);
}
