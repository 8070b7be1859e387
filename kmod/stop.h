/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that are stopped, by a stop signal or a debugger, and where they sleep.
 */
#ifndef KCR_STOP_H
#define KCR_STOP_H

#include <linux/sched.h>
#include <linux/sched/jobctl.h>

static inline bool kcr_task_is_stopped(struct task_struct *task)
{
	return task_is_stopped(task) || task_is_traced(task);
}

/*
 * Is the thread stopped where the kernel delivers signals?  Then it returns to user mode, by
 * its task works, or exits: whatever a debugger does, it does not go on with a system call.  Any
 * context that may not sleep.
 */
bool kcr_task_stopped_at_signals(struct task_struct *task);

#endif /* KCR_STOP_H */
