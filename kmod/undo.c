// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_UNDOS: what the end of a process undoes of its operations on System V semaphores
 * (SEM_UNDO).  The kernel keeps that in structures of ipc/sem.c: where their members are is asked
 * of BTF, once.
 *
 * A pinned thread cannot exit, and so keeps its list, which is read under RCU: who removes a set
 * frees it, and its entries in lists, after a grace period.  How long an entry is only its set tells.
 */
#include <linux/idr.h>
#include <linux/ipc.h>
#include <linux/ipc_namespace.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sem.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "btf.h"
#include "ioctl.h"
#include "park.h"

/* Semaphores: by a call, and so what it allocates, and at most with interrupts off. */
#define MAX_LOOKED_AT	(1u << 16)
#define SET_COST	16		/* semaphores could be looked at while a set is found */
#define SEM_IDS		0		/* in a namespace: ipc/util.h */

/* The part of an ID that is its place: by default, and with ipcmni_extend. */
static const int place_masks[] = { (1 << 15) - 1, (1 << 24) - 1 };

enum { UNDOS, USERS };

static struct kcr_btf_member in_list[] = {
	[UNDOS] = { "list_proc", "list_head", sizeof(struct list_head) },
	[USERS] = { "refcnt", "refcount_struct", sizeof(refcount_t) },
};

enum { NODE, SET };

static struct kcr_btf_member in_undo[] = {
	[NODE] = { "list_proc", "list_head", sizeof(struct list_head) },
	[SET] = { "semid", NULL, sizeof(int) },
};

/* The adjustments, one for each semaphore of the set: behind a pointer or, later, in place. */
static struct kcr_btf_member in_undo_pointer = { "semadj", "short int", sizeof(short *) };
static struct kcr_btf_member in_undo_array = { "semadj", "short int", 0 };

enum { PERMISSIONS, COUNT };

static struct kcr_btf_member in_set[] = {
	[PERMISSIONS] = { "sem_perm", "kern_ipc_perm", sizeof(struct kern_ipc_perm) },
	[COUNT] = { "sem_nsems", NULL, sizeof(int) },
};

static struct kcr_btf_wanted wanted[] = {
	{ "sem_undo_list", in_list, ARRAY_SIZE(in_list) },
	{ "sem_undo", in_undo, ARRAY_SIZE(in_undo) },
	{ "sem_undo", &in_undo_pointer, 1, .optional = true },
	{ "sem_undo", &in_undo_array, 1, .optional = true },
	{ "sem_array", in_set, ARRAY_SIZE(in_set) },
};

#define WITH_POINTER	(&wanted[2])
#define WITH_ARRAY	(&wanted[3])

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

struct collection {
	const struct ipc_namespace *ns;
	struct kcr_undo *out;
	u32 capacity, count;	/* also of those that did not fit */
	u32 looked_at;
	const void *list;	/* the last thread's */
	bool several;		/* … and another's is another one */
	unsigned int users;	/* of that list, by the kernel's count */
	unsigned int members;	/* of those, threads that were looked at */
};

static int number(const void *object, const struct kcr_btf_member *member)
{
	return READ_ONCE(*(const int *)kcr_btf_at(object, member));
}

/* The semaphores of a set; 0: it is gone.  Under RCU. */
static u32 length_of(const struct ipc_namespace *ns, int id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(place_masks); i++) {
		const struct kern_ipc_perm *set = idr_find(&ns->ids[SEM_IDS].ipcs_idr,
							   id & place_masks[i]);

		if (set && READ_ONCE(set->id) == id)
			return number((const void *)set - in_set[PERMISSIONS].offset,
				      &in_set[COUNT]);
	}
	return 0;
}

static const short *adjustments_of(const void *undo)
{
	return WITH_ARRAY->type ? kcr_btf_at(undo, &in_undo_array) :
				  READ_ONCE(*(const short *const *)kcr_btf_at(undo, &in_undo_pointer));
}

static int add_set(struct collection *to, const void *undo)
{
	const short *adjustment = adjustments_of(undo);
	int id = number(undo, &in_undo[SET]);
	u32 i, length = id < 0 ? 0 : length_of(to->ns, id);

	/* A new set can have the ID only when the entry of the old one has lost it. */
	smp_rmb();
	if (number(undo, &in_undo[SET]) != id)
		length = 0;
	to->looked_at += length + SET_COST;
	if (to->looked_at > MAX_LOOKED_AT)
		return -E2BIG;
	for (i = 0; i < length; i++) {
		struct kcr_undo found = {
			.set = id, .number = i, .adjustment = READ_ONCE(adjustment[i]),
		};

		if (!found.adjustment)
			continue;
		if (to->count < to->capacity)
			to->out[to->count] = found;
		to->count++;
	}
	return 0;
}

static int add_list(struct collection *to, const void *list)
{
	const struct list_head *head = kcr_btf_at(list, &in_list[UNDOS]), *node;
	int err = 0;

	rcu_read_lock();
	for (node = rcu_dereference(list_next_rcu(head)); node != head && !err;
	     node = rcu_dereference(list_next_rcu(node)))
		err = add_set(to, (const void *)node - in_undo[NODE].offset);
	rcu_read_unlock();
	return err;
}

static const void *list_of(const struct task_struct *task)
{
#ifdef CONFIG_SYSVIPC
	return task->sysvsem.undo_list;
#else
	return NULL;
#endif
}

/* What is in the list of a thread, which is pinned, unless it is the same as the last one's. */
static int add_thread(struct collection *to, const struct task_struct *task, int searched)
{
	const void *list = list_of(task);
	int err = 0;

	if (!list)
		return 0;
	if (searched)
		return searched;
	to->several |= to->list && list != to->list;
	to->ns = task->nsproxy->ipc_ns;
	if (list != to->list)
		err = add_list(to, list);
	to->list = list;
	to->members++;
	to->users = refcount_read(kcr_btf_at(list, &in_list[USERS]));
	return err;
}

/*
 * Most threads have a list, as whoever makes a thread gets one, and few have anything in it: only
 * then does it matter who has the list.  list_lock held.
 */
static int collect(struct kcr_member *member, int searched, struct collection *to, u32 *state)
{
	struct kcr_parked *parked;
	int err = 0;

	list_for_each_entry(parked, &member->threads, node) {
		if (!kcr_parked_pin(parked))
			continue;
		err = add_thread(to, parked->task, searched);
		kcr_parked_unpin(parked);
		if (err)
			return err;
	}
	if (to->count && to->several)
		*state |= KCR_UNDOS_SEVERAL;
	else if (to->count && to->users > to->members)
		*state |= KCR_UNDOS_SHARED;
	return 0;
}

static int search(void)
{
	int err = kcr_btf_search(&places);

	return err || WITH_POINTER->type || WITH_ARRAY->type ? err : -EOPNOTSUPP;
}

long kcr_ioc_undos(struct kcr_job *job, void *request)
{
	struct kcr_undos *req = request;
	struct collection all = { .capacity = min(req->count, MAX_LOOKED_AT) };
	struct kcr_member *member = kcr_job_find(job, req->pid);
	int searched = search();
	long ret;

	if (!member)
		return -ESRCH;
	all.out = kvcalloc(all.capacity + 1, sizeof(*all.out), GFP_KERNEL_ACCOUNT);
	if (!all.out)
		return -ENOMEM;
	req->state = 0;
	req->pad = 0;
	spin_lock(&job->list_lock);
	ret = collect(member, searched, &all, &req->state);
	spin_unlock(&job->list_lock);
	req->count = all.count;
	if (!ret && all.count > all.capacity)
		ret = -ENOSPC;
	if (!ret && copy_to_user(u64_to_user_ptr(req->undos), all.out,
				 all.count * sizeof(*all.out)))
		ret = -EFAULT;
	kvfree(all.out);
	return ret;
}
