// SPDX-License-Identifier: GPL-2.0
/*
 * The probe on sched_process_fork.  It is registered as long as the module is
 * loaded: registering patches code and unregistering waits for grace periods,
 * which would take place while programs are stopped.
 *
 * Every fork on the machine comes through here, so a fork that is not ours must
 * cost the same however many watches there are: two lock-free look-ups in tables
 * that are wide enough.  Watches are found under RCU and checked again under
 * their own lock; a catch belongs to the current thread.
 * Locks: list_lock of a job nests inside watch->lock, the buckets' locks inside both.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "fork.h"

#define WATCH_BITS	12
#define CATCH_BITS	8

struct bucket {
	spinlock_t lock;		/* guards changes of the list */
	struct hlist_head list;
};

static struct bucket watches[1 << WATCH_BITS];
static struct bucket catches[1 << CATCH_BITS];
static struct tracepoint *tracepoint;

static struct bucket *watch_bucket(const struct signal_struct *process)
{
	return &watches[hash_ptr(process, WATCH_BITS)];
}

static struct bucket *catch_bucket(const struct task_struct *thread)
{
	return &catches[hash_ptr(thread, CATCH_BITS)];
}

/* ---- watches of processes ---------------------------------------------------- */

int kcr_fork_add(struct kcr_fork_watch *watch)
{
	struct bucket *bucket = watch_bucket(watch->process);
	struct kcr_fork_watch *other;
	int ret = 0;

	INIT_HLIST_NODE(&watch->node);
	spin_lock_init(&watch->lock);
	watch->active = false;
	spin_lock(&bucket->lock);
	hlist_for_each_entry(other, &bucket->list, node)
		if (other->process == watch->process)
			ret = other->owner == watch->owner ? -EEXIST :
			      other->loading ? -EINPROGRESS : -EBUSY;
	if (!ret)
		hlist_add_head_rcu(&watch->node, &bucket->list);
	spin_unlock(&bucket->lock);
	return ret;
}

void kcr_fork_start(struct kcr_fork_watch *watch)
{
	WRITE_ONCE(watch->active, true);
	/* Pairs with probe_fork(): a child is either seen there or in the thread list already. */
	smp_mb();
}

void kcr_fork_stop(struct kcr_fork_watch *watch)
{
	spin_lock(&watch->lock);
	WRITE_ONCE(watch->active, false);
	spin_unlock(&watch->lock);
}

void kcr_fork_remove(struct kcr_fork_watch *watch)
{
	struct bucket *bucket = watch_bucket(watch->process);

	spin_lock(&bucket->lock);
	hlist_del_init_rcu(&watch->node);
	spin_unlock(&bucket->lock);
	kcr_fork_stop(watch);
}

static void tell_watch(const struct signal_struct *process, struct task_struct *child)
{
	struct kcr_fork_watch *watch;

	rcu_read_lock();
	hlist_for_each_entry_rcu(watch, &watch_bucket(process)->list, node) {
		if (watch->process != process)
			continue;
		spin_lock(&watch->lock);
		if (READ_ONCE(watch->active))
			watch->forked(watch, child);
		spin_unlock(&watch->lock);
		break;
	}
	rcu_read_unlock();
}

/* ---- catches of threads --------------------------------------------------------- */

void kcr_fork_catch_begin(struct kcr_fork_catch *catch)
{
	struct bucket *bucket = catch_bucket(current);

	catch->thread = current;
	spin_lock(&bucket->lock);
	hlist_add_head(&catch->node, &bucket->list);
	spin_unlock(&bucket->lock);
}

void kcr_fork_catch_end(struct kcr_fork_catch *catch)
{
	struct bucket *bucket = catch_bucket(current);

	spin_lock(&bucket->lock);
	hlist_del(&catch->node);
	spin_unlock(&bucket->lock);
}

/* Only the thread itself adds and removes its catch. */
static void tell_catch(struct task_struct *child)
{
	struct bucket *bucket = catch_bucket(current);
	struct kcr_fork_catch *catch, *own = NULL;

	if (hlist_empty(&bucket->list))
		return;
	spin_lock(&bucket->lock);
	hlist_for_each_entry(catch, &bucket->list, node)
		if (catch->thread == current)
			own = catch;
	spin_unlock(&bucket->lock);
	if (own)
		own->forked(own, child);
}

/* ---- the probe -------------------------------------------------------------------- */

static void probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	/* The child is in its parent's list by now; pairs with kcr_fork_start(). */
	smp_mb();
	tell_catch(child);
	tell_watch(parent->signal, child);
}

static void __init find_tracepoint(struct tracepoint *candidate, void *data)
{
	if (!strcmp(candidate->name, "sched_process_fork"))
		tracepoint = candidate;
}

static void __init init_buckets(struct bucket *bucket, size_t count)
{
	for (; count; bucket++, count--) {
		spin_lock_init(&bucket->lock);
		INIT_HLIST_HEAD(&bucket->list);
	}
}

int __init kcr_fork_init(void)
{
	init_buckets(watches, ARRAY_SIZE(watches));
	init_buckets(catches, ARRAY_SIZE(catches));
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
