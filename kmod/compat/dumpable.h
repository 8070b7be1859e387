/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the dumpable setting of a process is kept.
 */
#ifndef KCR_COMPAT_DUMPABLE_H
#define KCR_COMPAT_DUMPABLE_H

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>

/* 7.2: a structure of its own that outlives the mm; before, flags of the mm. */
#if __has_include(<linux/sched/exec_state.h>)
#define KCR_HAVE_EXEC_STATE 1
#include <linux/sched/exec_state.h>
#else
#define KCR_HAVE_EXEC_STATE 0
#endif

/* As PR_GET_DUMPABLE; mm is the task's, which has none any more when it is killed. */
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

#endif /* KCR_COMPAT_DUMPABLE_H */
