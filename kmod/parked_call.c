// SPDX-License-Identifier: GPL-2.0
/*
 * Calls in a parked thread: it is given one by another thread, which waits for it.  The
 * thread itself takes it in rest() of kmod/parked.c.  Locks: see park.h.
 */
#include <linux/completion.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "park.h"

void kcr_call_init(struct kcr_call *call, int (*fn)(struct kcr_call *call),
		   void (*release)(struct kref *ref))
{
	kref_init(&call->ref);
	init_completion(&call->done);
	call->fn = fn;
	call->release = release;
}

void kcr_call_put(struct kcr_call *call)
{
	kref_put(&call->ref, call->release);
}

/* Gives the call to a thread, if that can take it. */
static bool hand_over(struct kcr_parked *parked, struct kcr_call *call)
{
	lockdep_assert_held(&parked->job->list_lock);
	/* A thread that has a call already got it from a caller that was killed. */
	if (parked->state != KCR_ARRIVED || parked->call)
		return false;
	kref_get(&call->ref);
	WRITE_ONCE(parked->call, call);
	wake_up(&parked->wake);
	return true;
}

static int await_call(struct kcr_call *call)
{
	return wait_for_completion_killable(&call->done) ? -EINTR : call->ret;
}

int kcr_parked_run(struct kcr_parked *parked, struct kcr_call *call)
{
	struct kcr_job *job = parked->job;
	bool taken;

	lockdep_assert_held(&job->lock);
	spin_lock(&job->list_lock);
	taken = hand_over(parked, call);
	spin_unlock(&job->list_lock);
	return taken ? await_call(call) : -ESRCH;
}

int kcr_member_run(struct kcr_member *member, struct kcr_call *call)
{
	struct kcr_job *job = member->job;
	struct kcr_parked *parked;
	bool stopped = false, taken = false;

	lockdep_assert_held(&job->lock);
	spin_lock(&job->list_lock);
	list_for_each_entry(parked, &member->threads, node) {
		taken = hand_over(parked, call);
		if (taken)
			break;
		stopped |= parked->state == KCR_STOPPED;
	}
	spin_unlock(&job->list_lock);
	if (taken)
		return await_call(call);
	return stopped ? -EOPNOTSUPP : -ESRCH;
}
