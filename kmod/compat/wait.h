/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a parked thread sleeps: SIGKILL wakes it, it is not reported as a hung task,
 * and system suspend need not wait for it.
 */
#ifndef KCR_COMPAT_WAIT_H
#define KCR_COMPAT_WAIT_H

#include <linux/freezer.h>
#include <linux/version.h>
#include <linux/wait.h>

/* 6.1 (f5d39b020809 "freezer,sched: Rewrite core freezer logic"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
#define KCR_HAVE_TASK_FREEZABLE 1
#else
#define KCR_HAVE_TASK_FREEZABLE 0
#endif

/* 0, or -ERESTARTSYS after a fatal signal. */
#if KCR_HAVE_TASK_FREEZABLE
#define kcr_wait_parked(queue, condition) \
	wait_event_state(queue, condition, (TASK_KILLABLE | TASK_FREEZABLE))
#else
#define kcr_wait_parked(queue, condition)			\
({								\
	int __kcr_ret;						\
	freezer_do_not_count();					\
	__kcr_ret = wait_event_killable(queue, condition);	\
	freezer_count();					\
	__kcr_ret;						\
})
#endif

/* Sleeps for so many jiffies, or until a fatal signal. */
static inline void kcr_sleep_parked(long timeout)
{
#if KCR_HAVE_TASK_FREEZABLE
	set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
	schedule_timeout(timeout);
#else
	freezer_do_not_count();
	schedule_timeout_killable(timeout);
	freezer_count();
#endif
}

#endif /* KCR_COMPAT_WAIT_H */
