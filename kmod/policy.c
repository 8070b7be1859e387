// SPDX-License-Identifier: GPL-2.0
/*
 * Permissions; see policy.h.  The parameters may change at any time and
 * are read once per decision; no locks.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/pid_namespace.h>
#include <linux/printk.h>
#include <linux/ptrace.h>
#include <linux/ratelimit.h>
#include <linux/seccomp.h>
#include <linux/uidgid.h>

#include "lookup.h"
#include "policy.h"

/* The kernel does not reuse lower PIDs after they have wrapped around (RESERVED_PIDS). */
#define FIRST_NUMBER	300

static bool enabled = true;
module_param(enabled, bool, 0644);
MODULE_PARM_DESC(enabled, "Let callers without CAP_SYS_ADMIN begin checkpoints and restarts");

static bool restore_ids = true;
module_param(restore_ids, bool, 0644);
MODULE_PARM_DESC(restore_ids, "Let unprivileged callers restart processes with their old numbers");

static bool hold_signals = true;
module_param(hold_signals, bool, 0644);
MODULE_PARM_DESC(hold_signals, "Let supervisors hold back signals that end the programs they save");

static bool audit;
module_param(audit, bool, 0644);
MODULE_PARM_DESC(audit, "Log who adds a process to a checkpoint or chooses a process number");

int kcr_policy_open(void)
{
	return READ_ONCE(enabled) || capable(CAP_SYS_ADMIN) ? 0 : -EPERM;
}

int kcr_policy_trace(struct task_struct *task, bool joined)
{
	unsigned int mode = joined ? PTRACE_MODE_READ_FSCREDS : PTRACE_MODE_ATTACH_FSCREDS;

	return kcr_ptrace_may_access(task, mode) ? 0 : -EACCES;
}

bool kcr_policy_has_right(void)
{
	return checkpoint_restore_ns_capable(task_active_pid_ns(current)->user_ns);
}

int kcr_policy_hold(void)
{
	return READ_ONCE(hold_signals) ? 0 : -EPERM;
}

/* There is no way to ask a filter whether it would let clone(2) pass. */
static bool is_filtered(void)
{
	return seccomp_mode(&current->seccomp) != SECCOMP_MODE_DISABLED;
}

int kcr_policy_clone(pid_t number)
{
	if (is_filtered())
		return -EPERM;
	if (!number || kcr_policy_has_right())
		return 0;
	if (!READ_ONCE(restore_ids))
		return -EPERM;
	if (number < FIRST_NUMBER && task_active_pid_ns(current) == &init_pid_ns)
		return -EPERM;
	return 0;
}

void kcr_policy_audit(const char *what, pid_t number)
{
	if (READ_ONCE(audit))
		pr_info_ratelimited("uid %u, process %d: %s %d\n",
				    from_kuid(&init_user_ns, current_uid()),
				    task_tgid_nr(current), what, number);
}
