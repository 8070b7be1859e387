// SPDX-License-Identifier: GPL-2.0
/*
 * The probe on sched_process_fork.  It is registered as long as the module is
 * loaded: registering patches code and unregistering waits for grace periods,
 * which would be paid while programs stand still.  While nothing is watched
 * it costs a fork one test.
 *
 * watch_lock guards the list and is held while `forked` runs: that is what
 * kcr_fork_unwatch() waits for.  It nests outside job->list_lock.
 */
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "fork.h"

static DEFINE_SPINLOCK(watch_lock);
static HLIST_HEAD(watches);
static struct tracepoint *tracepoint;

void kcr_fork_watch(struct kcr_fork_watch *watch)
{
	spin_lock(&watch_lock);
	if (hlist_unhashed(&watch->node))
		hlist_add_head(&watch->node, &watches);
	spin_unlock(&watch_lock);
	/* With the barrier of probe_fork(): a child is either seen there or listed already. */
	smp_mb();
}

void kcr_fork_watch_nested(struct kcr_fork_watch *watch)
{
	lockdep_assert_held(&watch_lock);
	hlist_add_head(&watch->node, &watches);
}

void kcr_fork_unwatch(struct kcr_fork_watch *watch)
{
	spin_lock(&watch_lock);
	hlist_del_init(&watch->node);
	spin_unlock(&watch_lock);
}

static void probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct kcr_fork_watch *watch;
	struct hlist_node *next;

	/* The child is in its parent's list by now; see kcr_fork_watch(). */
	smp_mb();
	if (hlist_empty(&watches))
		return;
	spin_lock(&watch_lock);
	hlist_for_each_entry_safe(watch, next, &watches, node)
		if (watch->thread == parent || watch->process == parent->signal)
			watch->forked(watch, child);
	spin_unlock(&watch_lock);
}

static void __init find_tracepoint(struct tracepoint *candidate, void *data)
{
	if (!strcmp(candidate->name, "sched_process_fork"))
		tracepoint = candidate;
}

int __init kcr_fork_init(void)
{
	for_each_kernel_tracepoint(find_tracepoint, NULL);
	if (!tracepoint) {
		pr_err("the kernel has no tracepoint sched_process_fork\n");
		return -ENOENT;
	}
	return tracepoint_probe_register(tracepoint, probe_fork, NULL);
}

void kcr_fork_exit(void)
{
	tracepoint_probe_unregister(tracepoint, probe_fork, NULL);
	tracepoint_synchronize_unregister();
}
