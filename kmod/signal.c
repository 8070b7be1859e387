// SPDX-License-Identifier: GPL-2.0
/*
 * SIGNALS and SIGACTIONS: queued signals with their siginfo, and handlers.
 * Under job->list_lock a resting thread keeps its sighand; siglock nests
 * inside.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "park.h"

#define MAX_SIGNALS	(1 << 16)	/* per call */

struct collection {
	siginfo_t *infos;
	u32 capacity;
	u32 nr;
};

static void collect(struct collection *to, const kernel_siginfo_t *info)
{
	if (to->nr < to->capacity)
		copy_siginfo_to_external(&to->infos[to->nr], info);
	to->nr++;
}

/*
 * siglock held.  A signal is in the set without an entry if that could not be allocated.
 * More than a call can return are not counted either.
 */
static void collect_pending(struct collection *to, const struct sigpending *pending)
{
	kernel_siginfo_t info;
	struct sigqueue *entry;
	sigset_t left = pending->signal;
	int signal;

	list_for_each_entry(entry, &pending->list, list) {
		collect(to, &entry->info);
		sigdelset(&left, entry->info.si_signo);
		if (to->nr > MAX_SIGNALS)
			return;
	}
	for (signal = 1; signal <= _NSIG; signal++) {
		if (!sigismember(&left, signal))
			continue;
		clear_siginfo(&info);
		info.si_signo = signal;
		info.si_code = SI_USER;
		collect(to, &info);
	}
}

/* The resting thread with this TID, any for 0, or NULL.  list_lock held. */
static struct kcr_parked *find_thread(struct kcr_member *member, pid_t tid)
{
	struct kcr_parked *parked;

	if (!tid)
		return kcr_member_thread(member);
	list_for_each_entry(parked, &member->threads, node)
		if (kcr_parked_rests(parked) && task_pid_vnr(parked->task) == tid)
			return parked;
	return NULL;
}

static int collect_signals(struct kcr_member *member, pid_t tid, struct collection *to)
{
	struct kcr_parked *parked;
	struct sighand_struct *sighand;
	struct task_struct *task;
	int ret = -ESRCH;

	spin_lock(&member->job->list_lock);
	parked = find_thread(member, tid);
	if (parked) {
		task = parked->task;
		sighand = kcr_parked_sighand(parked);
		spin_lock_irq(&sighand->siglock);
		collect_pending(to, tid ? &task->pending : &task->signal->shared_pending);
		spin_unlock_irq(&sighand->siglock);
		ret = 0;
	}
	spin_unlock(&member->job->list_lock);
	return ret;
}

long kcr_ioc_signals(struct kcr_job *job, void *request)
{
	struct kcr_signals *signals = request;
	struct collection collection = {};
	struct kcr_member *member;
	int ret;

	if (signals->tid < 0)
		return -EINVAL;
	member = kcr_job_find(job, signals->pid);
	if (!member)
		return -ESRCH;

	collection.capacity = min_t(u32, signals->count, MAX_SIGNALS);
	collection.infos = kvcalloc(collection.capacity, sizeof(siginfo_t), GFP_KERNEL_ACCOUNT);
	if (!collection.infos)
		return -ENOMEM;
	ret = collect_signals(member, signals->tid, &collection);
	if (!ret && collection.nr > collection.capacity)
		ret = -ENOSPC;
	if (!ret && copy_to_user(u64_to_user_ptr(signals->siginfo), collection.infos,
				 collection.nr * sizeof(siginfo_t)))
		ret = -EFAULT;
	kvfree(collection.infos);
	signals->count = collection.nr;
	return ret;
}

static int read_actions(struct kcr_member *member, struct kcr_sigactions *request)
{
	const struct sigaction *action;
	struct kcr_parked *parked;
	struct sighand_struct *sighand;
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(request->action) != _NSIG);
	spin_lock(&member->job->list_lock);
	parked = kcr_member_thread(member);
	if (!parked) {
		spin_unlock(&member->job->list_lock);
		return -ESRCH;
	}
	sighand = kcr_parked_sighand(parked);
	spin_lock_irq(&sighand->siglock);
	for (i = 0; i < _NSIG; i++) {
		action = &sighand->action[i].sa;
		request->action[i][0] = (unsigned long)action->sa_handler;
		request->action[i][1] = action->sa_flags;
		request->action[i][2] = (unsigned long)action->sa_restorer;
		request->action[i][3] = action->sa_mask.sig[0];
	}
	spin_unlock_irq(&sighand->siglock);
	spin_unlock(&member->job->list_lock);
	return 0;
}

long kcr_ioc_sigactions(struct kcr_job *job, void *request)
{
	struct kcr_sigactions *actions = request;
	struct kcr_member *member;

	member = kcr_job_find(job, actions->pid);
	return member ? read_actions(member, actions) : -ESRCH;
}
