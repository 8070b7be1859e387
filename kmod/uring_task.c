// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_URING_REQUESTS: how many requests to io_urings the threads of a process have in
 * flight.  The kernel counts them for each thread, until nothing more is done for them, and
 * takes numbers for this count in advance; where both are is asked of BTF, once.
 *
 * A thread at rest submits nothing, and the kernel's notes on it stay as long as its
 * task_struct, unless it calls exec.  But what is done for a request ends in its thread, on its
 * way to user mode or in io_uring_enter(2): so it makes this call while it rests.
 */
#include <linux/err.h>
#include <linux/io_uring.h>
#include <linux/percpu_counter.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <uapi/linux/io_uring.h>

#include "arch/x86/call.h"
#include "btf.h"
#include "compat/task.h"
#include "ioctl.h"
#include "lookup.h"
#include "park.h"

#define MAX_REGISTERED	16		/* of one thread; IO_RINGFD_REG_MAX */

enum { IN_FLIGHT, CACHED_REFS };

static struct kcr_btf_member in_task[] = {
	[IN_FLIGHT] = { "inflight", "percpu_counter", sizeof(struct percpu_counter) },
	[CACHED_REFS] = { "cached_refs", NULL, sizeof(int) },
};

/* 5.18. */
static struct kcr_btf_member registered = {
	"registered_rings", "file", MAX_REGISTERED * sizeof(struct file *),
};

enum { TASK, REGISTERED };

static struct kcr_btf_wanted wanted[] = {
	[TASK] = { "io_uring_task", in_task, ARRAY_SIZE(in_task) },
	[REGISTERED] = { "io_uring_task", &registered, 1, .optional = true },
};

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

/* The caller's own, or under list_lock a resting thread's. */
static void count(const struct task_struct *task, struct kcr_uring_requests *out)
{
	const void *notes = kcr_task_io_uring(task);
	struct file *const *rings;
	int i;

	if (!notes)
		return;
	out->in_flight += percpu_counter_sum((struct percpu_counter *)
					     kcr_btf_at(notes, &in_task[IN_FLIGHT]));
	out->in_flight -= READ_ONCE(*(const int *)kcr_btf_at(notes, &in_task[CACHED_REFS]));
	rings = kcr_btf_at(notes, &registered);
	for (i = 0; wanted[REGISTERED].type && i < MAX_REGISTERED; i++)
		out->nr_registered += !!READ_ONCE(rings[i]);
}

/* ---- what threads do for theirs --------------------------------------------------- */

struct visit {
	struct kcr_call call;
	int fd;
};

/* In a parked thread. */
static int enter(struct kcr_call *call)
{
	const struct visit *visit = container_of(call, struct visit, call);
	const unsigned long argument[6] = { visit->fd, 0, 0, IORING_ENTER_GETEVENTS };
	struct pt_regs regs = {};

	kcr_call_set_arguments(&regs, argument);
	return kcr_io_uring_enter(&regs);
}

static void free_visit(struct kref *ref)
{
	kfree(container_of(ref, struct visit, call.ref));
}

static int visit(struct kcr_parked *parked, int fd)
{
	struct visit *visit = kzalloc(sizeof(*visit), GFP_KERNEL_ACCOUNT);
	int err;

	if (!visit)
		return -ENOMEM;
	kcr_call_init(&visit->call, enter, free_visit);
	visit->fd = fd;
	err = kcr_parked_run(parked, &visit->call);
	kcr_call_put(&visit->call);
	/* What the call itself says does not matter. */
	return err == -EINTR && fatal_signal_pending(current) ? err : 0;
}

/* The list does not change while the job is parked and we hold job->lock. */
static int examine(struct kcr_member *member, struct kcr_uring_requests *out)
{
	struct kcr_parked *parked;
	int err = 0;

	list_for_each_entry(parked, &member->threads, node) {
		if (out->fd >= 0 && kcr_task_io_uring(parked->task))
			err = visit(parked, out->fd);
		if (err)
			return err;
		cond_resched();
	}
	list_for_each_entry(parked, &member->threads, node) {
		spin_lock(&member->job->list_lock);
		if (kcr_parked_rests(parked))
			count(parked->task, out);
		spin_unlock(&member->job->list_lock);
		cond_resched();
	}
	return 0;
}

long kcr_ioc_uring_requests(struct kcr_job *job, void *request)
{
	struct kcr_uring_requests *out = request;
	struct kcr_member *member;
	int err = kcr_btf_search(&places);

	if (err)
		return err;
	out->in_flight = 0;
	out->nr_registered = 0;
	if (!out->pid) {
		count(current, out);
		return 0;
	}
	if (!job->parked)
		return -EINVAL;
	member = kcr_job_find(job, out->pid);
	return member ? examine(member, out) : -ESRCH;
}
