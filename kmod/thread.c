// SPDX-License-Identifier: GPL-2.0
/*
 * THREADS: the state of each thread, read from outside while it rests; see
 * park.h for why that is safe.  Everything is copied under job->list_lock
 * into one buffer per thread, then to the caller.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "arch/x86/registers.h"
#include "client.h"
#include "compat/task.h"
#include "ioctl.h"
#include "lookup.h"
#include "park.h"
#include "syscall.h"

#define MAX_STRIDE	(1 << 20)

static int read_registers(struct task_struct *task, struct kcr_thread *record)
{
	int ret = kcr_registers_read(task, record->regs);

	if (ret)
		return ret;
	kcr_syscall_restart(task, (struct user_regs_struct *)record->regs, &record->restart);
	record->xstate_size = kcr_xstate_size();
	return kcr_xstate_read(task, record + 1);
}

static u32 read_securebits(struct task_struct *task)
{
	u32 securebits;

	rcu_read_lock();
	securebits = __task_cred(task)->securebits;
	rcu_read_unlock();
	return securebits;
}

/* What prctl(2) and the like have set for it. */
static u32 read_settings(struct task_struct *task)
{
	const unsigned int flusher = PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE;
	unsigned int flags = READ_ONCE(task->flags);
	u32 settings = kcr_tsc_is_off(task) ? KCR_THREAD_NO_TSC : 0;

	if (flags & PF_MCE_PROCESS)
		settings |= flags & PF_MCE_EARLY ? KCR_THREAD_MCE_EARLY : KCR_THREAD_MCE_LATE;
	if ((flags & flusher) == flusher)
		settings |= KCR_THREAD_IO_FLUSHER;
	if (kcr_has_ports(task))
		settings |= KCR_THREAD_IO_PORTS;
	/* It may only trace who is bound by all of its rules. */
	if (kcr_landlock_traceme(task))
		settings |= KCR_THREAD_LANDLOCK;
	return settings;
}

static int read_thread(struct kcr_parked *parked, struct kcr_thread *record)
{
	struct task_struct *task = parked->task;
	const sigset_t *mask;

	lockdep_assert_held(&parked->job->list_lock);
	memset(record, 0, sizeof(*record));
	record->tid = task_pid_vnr(task);
	record->flags = read_settings(task);
	/* Not task->mm: a thread that was killed at rest may have none any more. */
	if (kcr_has_segments(parked->member->mm) || kcr_has_thread_segments(task))
		record->flags |= KCR_THREAD_SEGMENTS;
	if (parked->state == KCR_STOPPED)
		record->flags |= KCR_THREAD_STOPPED;
	if (kcr_client_holds(parked->job, parked->member->pid, task, KCR_ANSWER_FREE_RESTART))
		record->flags |= KCR_THREAD_HELD;
	/* Inside sigsuspend, ppoll …: the mask to come back to. */
	mask = test_tsk_restore_sigmask(task) ? &task->saved_sigmask : &task->blocked;
	record->sigmask = mask->sig[0];
	record->altstack_sp = task->sas_ss_sp;
	record->altstack_size = task->sas_ss_size;
	record->altstack_flags = task->sas_ss_flags;
	record->pdeath_signal = task->pdeath_signal;
	record->robust_list = kcr_task_robust_list(task);
	record->clear_child_tid = (unsigned long)task->clear_child_tid;
	kcr_task_rseq(task, &record->rseq, &record->rseq_len, &record->rseq_sig);
	record->securebits = read_securebits(task);
	return read_registers(task, record);
}

/* -ENOENT: it is not at rest (any more). */
static int read_if_at_rest(struct kcr_parked *parked, struct kcr_thread *record)
{
	struct kcr_job *job = parked->job;
	int ret;

	/* Its state says that it sleeps, but its FPU and FS/GS may still be on its CPU. */
	while (READ_ONCE(parked->state) != KCR_GONE && kcr_task_on_cpu(parked->task)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		usleep_range(10, 20);
	}
	spin_lock(&job->list_lock);
	ret = kcr_parked_rests(parked) ? read_thread(parked, record) : -ENOENT;
	spin_unlock(&job->list_lock);
	return ret;
}

static int read_threads(struct kcr_member *member, struct kcr_threads *request)
{
	size_t record_size = sizeof(struct kcr_thread) + kcr_xstate_size();
	struct kcr_parked *parked;
	struct kcr_thread *record;
	u32 nr = 0;
	int ret = 0;

	if (request->stride < record_size || request->stride > MAX_STRIDE)
		return -EINVAL;
	record = kvzalloc(record_size, GFP_KERNEL_ACCOUNT);
	if (!record)
		return -ENOMEM;
	/* The list does not change while we hold job->lock. */
	list_for_each_entry(parked, &member->threads, node) {
		ret = read_if_at_rest(parked, record);
		if (ret == -ENOENT) {
			ret = 0;
			continue;
		}
		if (ret)
			break;
		if (nr < request->count &&
		    copy_to_user(u64_to_user_ptr(request->buffer + (u64)nr * request->stride),
				 record, record_size)) {
			ret = -EFAULT;
			break;
		}
		nr++;
	}
	kvfree(record);
	if (!ret && !nr)
		ret = -ESRCH;
	if (!ret && nr > request->count)
		ret = -ENOSPC;
	request->count = nr;
	return ret;
}

long kcr_ioc_threads(struct kcr_job *job, void *request)
{
	struct kcr_threads *threads = request;
	struct kcr_member *member;

	member = kcr_job_find(job, threads->pid);
	return member ? read_threads(member, threads) : -ESRCH;
}
