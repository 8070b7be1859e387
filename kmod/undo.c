// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_UNDOS: what the end of a process undoes of its operations on System V semaphores
 * (SEM_UNDO).  The kernel keeps that in structures of ipc/sem.c: where their members are is asked
 * of BTF, once.
 *
 * Under job->list_lock a resting thread cannot exit, and so keeps its list, whose own lock nests
 * inside: who removes a set takes it to remove the set's entry, and frees both after a grace period.
 * How long an entry is only its set tells.
 */
#include <linux/idr.h>
#include <linux/ipc.h>
#include <linux/ipc_namespace.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sem.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "btf.h"
#include "ioctl.h"
#include "park.h"

#define MAX_LOOKED_AT	(1u << 16)	/* semaphores, under locks, and so what a call allocates */
#define SET_COST	16		/* semaphores could be looked at while a set is found */
#define SEM_IDS		0		/* in a namespace: ipc/util.h */

/* The part of an ID that is its place: by default, and with ipcmni_extend. */
static const int place_masks[] = { (1 << 15) - 1, (1 << 24) - 1 };

enum { LOCK, UNDOS, USERS };

static struct kcr_btf_member in_list[] = {
	[LOCK] = { "lock", "spinlock", sizeof(spinlock_t) },
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
	spinlock_t *lock = (void *)kcr_btf_at(list, &in_list[LOCK]);
	const struct list_head *head = kcr_btf_at(list, &in_list[UNDOS]), *node;
	int err = 0;

	spin_lock(lock);
	rcu_read_lock();
	for (node = head->next; node != head && !err; node = node->next)
		err = add_set(to, (const void *)node - in_undo[NODE].offset);
	rcu_read_unlock();
	spin_unlock(lock);
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

/*
 * Most threads have a list, as whoever makes a thread gets one, and few have anything in it: only
 * then does it matter who has the list.  list_lock held.
 */
static int collect(struct kcr_member *member, int searched, struct collection *to, u32 *state)
{
	const void *list = NULL;
	struct kcr_parked *parked;
	unsigned int users = 0;
	bool several = false;
	int err = 0;

	list_for_each_entry(parked, &member->threads, node) {
		const void *own = kcr_parked_rests(parked) ? list_of(parked->task) : NULL;

		if (!own)
			continue;
		if (searched)
			return searched;
		several |= list && own != list;
		to->ns = parked->task->nsproxy->ipc_ns;
		if (own != list)
			err = add_list(to, own);
		if (err)
			return err;
		list = own;
		users++;
	}
	if (!to->count)
		return 0;
	if (several)
		*state |= KCR_UNDOS_SEVERAL;
	else if (refcount_read(kcr_btf_at(list, &in_list[USERS])) > users)
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
