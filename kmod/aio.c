// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_AIO: the contexts of io_setup(2) that an address space has.  Nothing but the kernel's
 * own structures tells whether requests are in flight: each holds a reference to its context,
 * until its event, its eventfd and its file are done with.  Where their members are is asked of
 * BTF, once.
 *
 * The threads that could create or destroy contexts are at rest, or are the caller's own.
 * The table and the contexts are freed by RCU.  Requests of threads at rest only end: what is
 * counted is not less than there are in the end.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "btf.h"
#include "ioctl.h"
#include "job.h"

#ifdef CONFIG_AIO

#define MAX_CONTEXTS	(1 << 16)	/* per call */

enum { NR, TABLE };

static struct kcr_btf_member in_table[] = {
	[NR] = { "nr", NULL, sizeof(u32) },
	[TABLE] = { "table", "kioctx", 0 },
};

enum { REQS, USER_ID, MMAP_SIZE, MAX_REQS, NR_EVENTS, TAIL, ACTIVE_REQS };

static struct kcr_btf_member in_context[] = {
	[REQS] = { "reqs", "percpu_ref", sizeof(struct percpu_ref) },
	[USER_ID] = { "user_id", NULL, sizeof(long) },
	[MMAP_SIZE] = { "mmap_size", NULL, sizeof(long) },
	[MAX_REQS] = { "max_reqs", NULL, sizeof(u32) },
	[NR_EVENTS] = { "nr_events", NULL, sizeof(u32) },
	[TAIL] = { "tail", NULL, sizeof(u32) },
	[ACTIVE_REQS] = { "active_reqs", "list_head", sizeof(struct list_head) },
};

static struct kcr_btf_wanted wanted[] = {
	{ "kioctx_table", in_table, ARRAY_SIZE(in_table) },
	{ "kioctx", in_context, ARRAY_SIZE(in_context) },
};

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

static u32 number(const void *object, const struct kcr_btf_member *member)
{
	return READ_ONCE(*(const u32 *)kcr_btf_at(object, member));
}

static u64 word(const void *object, const struct kcr_btf_member *member)
{
	return READ_ONCE(*(const unsigned long *)kcr_btf_at(object, member));
}

/* All references, with the kernel's bias; a context that is being destroyed has no such count. */
static u64 count_references(const struct percpu_ref *ref)
{
	unsigned long __percpu *counts = (unsigned long __percpu *)
					 (ref->percpu_count_ptr & ~__PERCPU_REF_ATOMIC_DEAD);
	u64 sum = atomic_long_read(&ref->data->count);
	int cpu;

	if (ref->percpu_count_ptr & __PERCPU_REF_ATOMIC_DEAD)
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(counts, cpu));
	return sum;
}

static void describe(const void *context, struct kcr_aio_context *out)
{
	const struct list_head *active = kcr_btf_at(context, &in_context[ACTIVE_REQS]);

	*out = (struct kcr_aio_context){
		.id = word(context, &in_context[USER_ID]),
		.length = word(context, &in_context[MMAP_SIZE]),
		.references = count_references(kcr_btf_at(context, &in_context[REQS])),
		.max_reqs = number(context, &in_context[MAX_REQS]),
		.nr_events = number(context, &in_context[NR_EVENTS]),
		.tail = number(context, &in_context[TAIL]),
		.flags = list_empty_careful(active) ? 0 : KCR_AIO_WAITS,
	};
}

static u32 collect(struct mm_struct *mm, struct kcr_aio_context *out, u32 capacity)
{
	void __rcu *const *slots;
	const void *table, *context;
	u32 i, nr = 1, found = 0;

	/* There may be many, and many processors. */
	for (i = 0; i < nr; i++) {
		rcu_read_lock();
		table = rcu_dereference(mm->ioctx_table);
		nr = table ? number(table, &in_table[NR]) : 0;
		slots = table ? kcr_btf_at(table, &in_table[TABLE]) : NULL;
		context = i < nr ? rcu_dereference(slots[i]) : NULL;
		if (context && found++ < capacity)
			describe(context, &out[found - 1]);
		rcu_read_unlock();
		cond_resched();
	}
	return found;
}

static long list(struct mm_struct *mm, struct kcr_aio *aio)
{
	u32 capacity = min_t(u32, aio->count, MAX_CONTEXTS);
	struct kcr_aio_context *contexts;
	long ret = 0;

	contexts = kvcalloc(capacity + 1, sizeof(*contexts), GFP_KERNEL_ACCOUNT);
	if (!contexts)
		return -ENOMEM;
	aio->count = collect(mm, contexts, capacity);
	if (aio->count > capacity)
		ret = -ENOSPC;
	else if (copy_to_user(u64_to_user_ptr(aio->contexts), contexts,
			      aio->count * sizeof(*contexts)))
		ret = -EFAULT;
	kvfree(contexts);
	return ret;
}

/* Nothing need be known of a process that has never made one. */
static long examine(struct mm_struct *mm, struct kcr_aio *aio)
{
	long ret;

	if (!rcu_access_pointer(mm->ioctx_table)) {
		aio->count = 0;
		return 0;
	}
	ret = kcr_btf_search(&places);
	return ret ? ret : list(mm, aio);
}

long kcr_ioc_aio(struct kcr_job *job, void *request)
{
	struct kcr_aio *aio = request;
	struct mm_struct *mm;
	long ret;

	if (!aio->pid)
		return examine(current->mm, aio);
	mm = kcr_job_mm(job, aio->pid, false);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	ret = examine(mm, aio);
	mmput(mm);
	return ret;
}

#else

long kcr_ioc_aio(struct kcr_job *job, void *request)
{
	struct kcr_aio *aio = request;

	aio->count = 0;
	return 0;
}

#endif
