/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the dumpable setting of a process is kept: may be read for any process, and set
 * for one whose threads all sleep in the module.
 */
#ifndef KCR_COMPAT_DUMPABLE_H
#define KCR_COMPAT_DUMPABLE_H

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/version.h>

/* 7.2: a structure of its own that outlives the mm; before, flags of the mm. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define KCR_HAVE_EXEC_STATE 1
#include <linux/sched/exec_state.h>
#else
#define KCR_HAVE_EXEC_STATE 0
#endif

/* As PR_GET_DUMPABLE; mm is the task's, which drops its own when it is killed. */
static inline u32 kcr_task_dumpable(struct task_struct *task, struct mm_struct *mm)
{
#if KCR_HAVE_EXEC_STATE
	u32 dumpable;

	rcu_read_lock();
	dumpable = READ_ONCE(rcu_dereference(task->exec_state)->dumpable);
	rcu_read_unlock();
	return dumpable;
#else
	return get_dumpable(mm);
#endif
}

/* As PR_SET_DUMPABLE, with 0 or 1.  RCU read lock held. */
static inline void kcr_task_set_dumpable(struct task_struct *task, struct mm_struct *mm, u32 value)
{
#if KCR_HAVE_EXEC_STATE
	WRITE_ONCE(rcu_dereference(task->exec_state)->dumpable, value);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	__mm_flags_set_mask_dumpable(mm, value);
#else
	set_mask_bits(&mm->flags, MMF_DUMPABLE_MASK, value);
#endif
}

#endif /* KCR_COMPAT_DUMPABLE_H */
