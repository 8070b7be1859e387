/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Seeing a child before its first instruction (a probe on the tracepoint
 * sched_process_fork, which runs in the parent before the child is woken).
 * A process is watched from outside; a thread that clones for us catches its
 * own child.
 */
#ifndef KCR_FORK_H
#define KCR_FORK_H

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/*
 * Watches the forks of all threads of a process.  A process has at most one
 * watch: it also says which job has the process.  Its memory is freed by RCU
 * (kfree_rcu) after kcr_fork_remove().
 */
struct kcr_fork_watch {
	struct hlist_node node;
	struct signal_struct *process;
	const void *owner;		/* only compared */
	bool loading;			/* no other owner may have it until this one is done */
	spinlock_t lock;		/* held while `forked` runs */
	bool active;
	/* In the parent, atomic.  May kcr_task_work_add() to the child. */
	void (*forked)(struct kcr_fork_watch *watch, struct task_struct *child);
};

/*
 * Adds a watch, filled in except for node, lock and active; it is not active
 * yet.  -EEXIST: this owner has one for the process; -EBUSY: another owner has;
 * -EINPROGRESS: likewise, and it is loading the process.
 */
int kcr_fork_add(struct kcr_fork_watch *watch);
/* From now on `forked` is called; children forked before are in the thread list. */
void kcr_fork_start(struct kcr_fork_watch *watch);
/* After it returns `forked` is not running and will not run.  Not from `forked`. */
void kcr_fork_stop(struct kcr_fork_watch *watch);
/* Likewise, and removes it from the table. */
void kcr_fork_remove(struct kcr_fork_watch *watch);

/* Catches the forks of the calling thread, between begin and end; on its stack. */
struct kcr_fork_catch {
	struct hlist_node node;
	struct task_struct *thread;
	void (*forked)(struct kcr_fork_catch *catch, struct task_struct *child);
};

void kcr_fork_catch_begin(struct kcr_fork_catch *catch);
void kcr_fork_catch_end(struct kcr_fork_catch *catch);

int kcr_fork_init(void);
void kcr_fork_exit(void);

#endif /* KCR_FORK_H */
