/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seeing a child before its first instruction (a probe on the tracepoint
 * sched_process_fork, which runs in the parent before the child is woken).
 */
#ifndef KCR_FORK_H
#define KCR_FORK_H

#include <linux/list.h>
#include <linux/sched.h>

struct kcr_fork_watch {
	struct hlist_node node;
	struct task_struct *thread;	/* watch what this thread forks … */
	struct signal_struct *process;	/* … or what any thread of this process forks */
	/* In the parent, atomic: no sleeping. May kcr_task_work_add() to the child. */
	void (*forked)(struct kcr_fork_watch *watch, struct task_struct *child);
};

/*
 * The watch's node is zero before the first use; watching twice is watching once.
 * After kcr_fork_unwatch() returns, `forked` is not running and will not run.
 */
void kcr_fork_watch(struct kcr_fork_watch *watch);
/* The same from within `forked`. */
void kcr_fork_watch_nested(struct kcr_fork_watch *watch);
void kcr_fork_unwatch(struct kcr_fork_watch *watch);

int kcr_fork_init(void);
void kcr_fork_exit(void);

#endif /* KCR_FORK_H */
