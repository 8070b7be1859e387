/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the administrator of a machine decides (module parameters, see
 * kcr(4)) and what the kernel's rules allow a caller to do to a program.
 */
#ifndef KCR_POLICY_H
#define KCR_POLICY_H

#include <linux/sched.h>
#include <linux/types.h>

/* May the caller begin a job?  0, or -EPERM: `enabled` is off. */
int kcr_policy_open(void);

/*
 * May the caller stop and read this program now?  The kernel's own rule for
 * attaching a debugger, security modules included; it is checked at each use, as
 * a program may have changed its credentials since.  `joined`: it is a child
 * of a program that was added and could not name a tracer to Yama: the rule for
 * read access is used.  0 or -EACCES.  Does not sleep.
 */
int kcr_policy_trace(struct task_struct *task, bool joined);

/* May a job hold signals back?  0, or -EPERM: `hold_signals` is off. */
int kcr_policy_hold(void);

/*
 * May the caller create a process or thread, with this PID (0: any)?
 * 0; -EPERM: a seccomp filter is in force, `restore_ids` is off, or the PID
 * is reserved for the system.
 */
int kcr_policy_clone(pid_t number);
/* Would clone3(2) let the caller choose a PID by itself? */
bool kcr_policy_has_right(void);

/* One line in the kernel log, if `audit` is on: the caller did this to PID `number`. */
void kcr_policy_audit(const char *what, pid_t number);

#endif /* KCR_POLICY_H */
