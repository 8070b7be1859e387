// SPDX-License-Identifier: GPL-2.0
/*
 * LIST: the processes of a parked job.  Their state is copied under
 * job->list_lock, one process at a time; which processes share what is found
 * afterwards, by sorting.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>

#include "compat/dumpable.h"
#include "compat/mm.h"
#include "compat/task.h"
#include "ioctl.h"
#include "park.h"

enum shared_kind { SHARED_MM, SHARED_FILES, SHARED_FS, SHARED_SIGHAND, NR_SHARED };

/* The objects that a process may share with others; only compared. */
struct sharing {
	const void *object[NR_SHARED];
};

struct entry {
	const void *object;
	u32 place;		/* index in the list, from 0 */
};

struct listing {
	struct kcr_process *processes;
	struct sharing *sharing;
	struct entry *sorted;	/* by object, then place */
	u32 capacity;
	u32 nr;
};

static u32 process_flags(struct kcr_member *member)
{
	struct signal_struct *signal = member->watch.process;
	struct kcr_parked *parked;
	u32 flags = member->flags;

	if (signal->flags & SIGNAL_STOP_STOPPED || signal->group_stop_count)
		flags |= KCR_PROCESS_STOPPED;
	if (signal->is_child_subreaper)
		flags |= KCR_PROCESS_SUBREAPER;
	if (kcr_signal_reaps_itself(signal))
		flags |= KCR_PROCESS_AUTOREAP;
	list_for_each_entry(parked, &member->threads, node) {
		if (!kcr_parked_rests(parked))
			continue;
		if (test_tsk_thread_flag(parked->task, TIF_ADDR32))
			flags |= KCR_PROCESS_COMPAT;
		if (parked->task->ptrace)
			flags |= KCR_PROCESS_TRACED;
		if (!list_empty_careful(&parked->task->ptraced))
			flags |= KCR_PROCESS_TRACER;
		if (kcr_task_io_uring(parked->task))
			flags |= KCR_PROCESS_IO_URING;
		if (kcr_task_uring_is_restricted(parked->task))
			flags |= KCR_PROCESS_RESTRICTED;
	}
	/* A leader that has ended stays until its last thread has ended. */
	if (READ_ONCE(member->leader->exit_state)) {
		flags |= KCR_PROCESS_LEADERLESS;
		if (member->leader->ptrace)
			flags |= KCR_PROCESS_TRACED;
	}
	return flags;
}

static u32 mdwe_flags(const struct mm_struct *mm)
{
	bool refused, own;

	kcr_mm_mdwe(mm, &refused, &own);
	return (refused ? KCR_PROCESS_MDWE : 0) | (own ? KCR_PROCESS_MDWE_OWN : 0);
}

static u32 aio_flags(const struct mm_struct *mm)
{
#ifdef CONFIG_AIO
	return rcu_access_pointer(mm->ioctx_table) ? KCR_PROCESS_AIO : 0;
#else
	return 0;
#endif
}

static u32 mm_flags(const struct mm_struct *mm)
{
	return mdwe_flags(mm) | aio_flags(mm) | (kcr_mm_has_uprobes(mm) ? KCR_PROCESS_UPROBES : 0);
}

/* list_lock held; false if the process died. */
static bool describe(struct kcr_member *member, struct kcr_process *process,
		     struct sharing *sharing)
{
	struct kcr_parked *parked = kcr_member_thread(member);
	struct task_struct *task;

	if (!parked)
		return false;
	task = parked->task;
	memset(process, 0, sizeof(*process));
	process->pid = pid_vnr(member->pid);
	process->flags = process_flags(member) | mm_flags(member->mm);
	list_for_each_entry(parked, &member->threads, node)
		process->nr_threads += kcr_parked_rests(parked);
	process->exit_signal = member->leader->exit_signal;
	if (process->flags & KCR_PROCESS_STOPPED) {
		process->stop_signal = task->jobctl & JOBCTL_STOP_SIGMASK;
		/* wait(2) clears the code once it has reported it. */
		if (!READ_ONCE(task->signal->group_exit_code))
			process->flags |= KCR_PROCESS_STOP_SEEN;
	}
	if (process->flags & KCR_PROCESS_LEADERLESS)
		process->leader_exit = member->leader->exit_code;
	process->dumpable = kcr_task_dumpable(task, member->mm);
	if (member->mm->def_flags & VM_LOCKED)
		process->mm_def_flags |= KCR_VMA_LOCKED;
	if (member->mm->def_flags & VM_LOCKONFAULT)
		process->mm_def_flags |= KCR_VMA_LOCKONFAULT;
	sharing->object[SHARED_MM] = task->mm;
	sharing->object[SHARED_FILES] = task->files;
	sharing->object[SHARED_FS] = task->fs;
	sharing->object[SHARED_SIGHAND] = rcu_access_pointer(task->sighand);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->object != right->object)
		return left->object < right->object ? -1 : 1;
	return left->place < right->place ? -1 : 1;
}

static u32 *id_field(struct kcr_process *process, enum shared_kind kind)
{
	switch (kind) {
	case SHARED_MM:
		return &process->mm_id;
	case SHARED_FILES:
		return &process->files_id;
	case SHARED_FS:
		return &process->fs_id;
	default:
		return &process->sighand_id;
	}
}

/* Sets the ID of each object: the index of the first process that has it, from 1. */
static void number(struct listing *listing, enum shared_kind kind)
{
	u32 i, first = 0;

	for (i = 0; i < listing->nr; i++) {
		listing->sorted[i].object = listing->sharing[i].object[kind];
		listing->sorted[i].place = i;
	}
	sort(listing->sorted, listing->nr, sizeof(*listing->sorted), compare, NULL);
	for (i = 0; i < listing->nr; i++) {
		if (listing->sorted[i].object != listing->sorted[first].object)
			first = i;
		*id_field(&listing->processes[listing->sorted[i].place], kind) =
			listing->sorted[first].place + 1;
	}
}

static int listing_alloc(struct listing *listing, u32 capacity)
{
	listing->capacity = capacity;
	listing->processes = kvcalloc(capacity, sizeof(*listing->processes), GFP_KERNEL_ACCOUNT);
	listing->sharing = kvcalloc(capacity, sizeof(*listing->sharing), GFP_KERNEL_ACCOUNT);
	listing->sorted = kvcalloc(capacity, sizeof(*listing->sorted), GFP_KERNEL_ACCOUNT);
	return listing->processes && listing->sharing && listing->sorted ? 0 : -ENOMEM;
}

static void listing_free(struct listing *listing)
{
	kvfree(listing->sorted);
	kvfree(listing->sharing);
	kvfree(listing->processes);
}

static void listing_fill(struct kcr_job *job, struct listing *listing)
{
	struct kcr_member *member;
	int kind;

	kcr_for_each_member(member, job) {
		if (listing->nr == listing->capacity)
			break;
		spin_lock(&job->list_lock);
		if (describe(member, &listing->processes[listing->nr],
			     &listing->sharing[listing->nr]))
			listing->nr++;
		spin_unlock(&job->list_lock);
		cond_resched();
	}
	for (kind = 0; kind < NR_SHARED; kind++)
		number(listing, kind);
}

long kcr_ioc_list(struct kcr_job *job, void *request)
{
	struct listing listing = {};
	struct kcr_list *list = request;
	int ret;

	ret = listing_alloc(&listing, job->nr_members);
	if (!ret) {
		listing_fill(job, &listing);
		if (listing.nr > list->count)
			ret = -ENOSPC;
		else if (copy_to_user(u64_to_user_ptr(list->processes), listing.processes,
				      listing.nr * sizeof(*listing.processes)))
			ret = -EFAULT;
		list->count = listing.nr;
	}
	listing_free(&listing);
	return ret;
}
