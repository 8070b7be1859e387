/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the administrator of a machine decides (parameters of the module, see
 * kcr(4)) and what the kernel's rules say of a caller and a program.
 */
#ifndef KCR_POLICY_H
#define KCR_POLICY_H

#include <linux/sched.h>
#include <linux/types.h>

/* May the caller begin a job?  0, or -EPERM: `enabled` is off. */
int kcr_policy_open(void);

/*
 * May the caller stop and read this program now?  The kernel's own rule for
 * attaching a debugger, security modules included; it is asked at each use, as
 * a program may have changed its identity since.  `joined`: it is a child of
 * one that was asked for, which has no tracer of its own choice (Yama):
 * the rule for looking at it is asked.  0 or -EACCES.  Does not sleep.
 */
int kcr_policy_trace(struct task_struct *task, bool joined);

/*
 * May the caller make a process or thread, with this number (0: any)?
 * 0; -EPERM: a seccomp filter is in force, `restore_ids` is off, or the number
 * is one of those kept for the system.
 */
int kcr_policy_clone(pid_t number);
/* Would clone3(2) let the caller choose a number by itself? */
bool kcr_policy_has_right(void);

/* One line in the kernel's log, if `audit` is on: the caller did this to `number`. */
void kcr_policy_audit(const char *what, pid_t number);

#endif /* KCR_POLICY_H */
