// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_MEMPOLICIES: the NUMA memory policies of a process's threads and mappings.
 *
 * The threads are stopped, but the machine's memory may be added to or taken from their cpuset:
 * a task's policy is read under its alloc_lock, those of mappings under mmap_lock.  The list of
 * threads does not change while the job is parked and job->lock is held.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/mempolicy.h"
#include "compat/mm.h"
#include "ioctl.h"
#include "job.h"
#include "park.h"

#define MAX_POLICIES	(1u << 17)	/* limits what one call allocates */

struct policies {
	struct kcr_mempolicy *out;
	u32 capacity;
	u32 count;		/* also of those that did not fit */
};

static void add(struct policies *all, const struct mempolicy *policy, struct kcr_mempolicy head)
{
	struct kcr_mempolicy *out;
	nodemask_t nodes;
	int node;

	if (all->count++ >= all->capacity)
		return;
	out = &all->out[all->count - 1];
	*out = head;
	out->mode = kcr_policy_mode(policy);
	out->home_node = kcr_policy_home(policy);
	kcr_policy_nodes(policy, &nodes);
	for_each_node_mask(node, nodes)
		if (node < KCR_POLICY_NODES)
			out->nodes[node / 64] |= 1ULL << node % 64;
}

static void add_threads(struct policies *all, const struct kcr_member *member)
{
	const struct mempolicy *policy;
	struct kcr_parked *parked;

	list_for_each_entry(parked, &member->threads, node) {
		task_lock(parked->task);
		policy = kcr_task_policy(parked->task);
		if (policy)
			add(all, policy, (struct kcr_mempolicy) {
				.tid = task_pid_vnr(parked->task),
			});
		task_unlock(parked->task);
	}
}

static int add_mappings(struct policies *all, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	int err = mmap_read_lock_killable(mm);

	if (err)
		return err;
	kcr_for_each_vma(mm, vma) {
		const struct mempolicy *policy = kcr_vma_policy(vma);

		if (policy)
			add(all, policy, (struct kcr_mempolicy) {
				.start = vma->vm_start, .end = vma->vm_end,
			});
	}
	mmap_read_unlock(mm);
	return 0;
}

static int collect(struct kcr_job *job, pid_t pid, struct policies *all)
{
	struct kcr_member *member = kcr_job_find(job, pid);
	struct mm_struct *mm;
	int err;

	if (!member)
		return -ESRCH;
	mm = kcr_job_mm(job, pid, false);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	add_threads(all, member);
	err = add_mappings(all, mm);
	mmput(mm);
	return err;
}

long kcr_ioc_mempolicies(struct kcr_job *job, void *request)
{
	struct kcr_mempolicies *req = request;
	struct policies all = { .capacity = min(req->count, MAX_POLICIES) };
	long ret;

	all.out = kvcalloc(all.capacity + 1, sizeof(*all.out), GFP_KERNEL_ACCOUNT);
	if (!all.out)
		return -ENOMEM;
	ret = collect(job, req->pid, &all);
	if (!ret) {
		req->count = all.count;
		if (all.count > all.capacity)
			ret = -ENOSPC;
		else if (copy_to_user(u64_to_user_ptr(req->policies), all.out,
				      all.count * sizeof(*all.out)))
			ret = -EFAULT;
	}
	kvfree(all.out);
	return ret;
}
