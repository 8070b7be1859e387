/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fields and flags of task_struct that moved between kernel versions.
 */
#ifndef KCR_COMPAT_TASK_H
#define KCR_COMPAT_TASK_H

#include <linux/ktime.h>
#include <linux/restart_block.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/thread_info.h>
#include <linux/version.h>

/* 6.4 (54e6842d0775 "fork/vm: Move common PF_IO_WORKER behavior to new flag"). */
#ifdef PF_USER_WORKER
#define KCR_HAVE_USER_WORKER 1
#else
#define KCR_HAVE_USER_WORKER 0
#endif

/* Threads that never run user code but are in a process's thread list. */
#if KCR_HAVE_USER_WORKER
#define KCR_PF_WORKER (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)
#else
#define KCR_PF_WORKER (PF_KTHREAD | PF_IO_WORKER)
#endif

/* False: the task has been switched out, and its registers are in memory. */
static inline bool kcr_task_on_cpu(const struct task_struct *task)
{
#ifdef CONFIG_SMP
	/* With the release in finish_task(). */
	return smp_load_acquire(&task->on_cpu);
#else
	return task == current;
#endif
}

/* The kernel's notes on what it does with io_uring; NULL: it has never used it. */
static inline const void *kcr_task_io_uring(const struct task_struct *task)
{
#ifdef CONFIG_IO_URING
	return READ_ONCE(task->io_uring);
#else
	return NULL;
#endif
}

/* 7.0 (ed82f35b926b "io_uring: allow registration of per-task restrictions"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0) && defined(CONFIG_IO_URING)
#define KCR_HAVE_URING_RESTRICT 1
#else
#define KCR_HAVE_URING_RESTRICT 0
#endif

/* Do restrictions apply to each io_uring that it makes? */
static inline bool kcr_task_uring_is_restricted(const struct task_struct *task)
{
#if KCR_HAVE_URING_RESTRICT
	return READ_ONCE(task->io_uring_restrict);
#else
	return false;
#endif
}

/*
 * 5.11 (12db8b690010 "entry: Add support for TIF_NOTIFY_SIGNAL"), and 5.10.162.
 * A task work can run before the flag that announced it is cleared.  The flag must
 * be set afterwards, for the fix-up of the system call, but while it is set
 * clone(2) fails.
 */
#ifdef TIF_NOTIFY_SIGNAL
#define KCR_HAVE_NOTIFY_SIGNAL 1
#else
#define KCR_HAVE_NOTIFY_SIGNAL 0
#endif

/*
 * Until 5.18 (8ba62d37949e "task_work: Call tracehook_notify_signal from get_signal on all
 * architectures") such a work ran after the kernel had looked whether there are signals.
 */
#if KCR_HAVE_NOTIFY_SIGNAL && LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#define KCR_SEES_SIGNALS_BEFORE_WORKS 1
#else
#define KCR_SEES_SIGNALS_BEFORE_WORKS 0
#endif

static inline bool kcr_notify_signal_hide(void)
{
#if KCR_HAVE_NOTIFY_SIGNAL
	return test_and_clear_thread_flag(TIF_NOTIFY_SIGNAL);
#else
	return false;
#endif
}

static inline void kcr_notify_signal_show(bool hidden)
{
#if KCR_HAVE_NOTIFY_SIGNAL
	if (hidden)
		set_thread_flag(TIF_NOTIFY_SIGNAL);
#endif
}

/* 7.1: the futex fields of a task moved into one structure. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define KCR_HAVE_FUTEX_DATA 1
#else
#define KCR_HAVE_FUTEX_DATA 0
#endif

static inline u64 kcr_task_robust_list(const struct task_struct *task)
{
#if KCR_HAVE_FUTEX_DATA
	return (unsigned long)task->futex.robust_list;
#else
	return (unsigned long)task->robust_list;
#endif
}

/* 6.19 (faba9d250eae "rseq: Introduce struct rseq_data"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define KCR_HAVE_TASK_RSEQ_DATA 1
#else
#define KCR_HAVE_TASK_RSEQ_DATA 0
#endif

/* 6.3 (ee3e3ac05c26 "rseq: Introduce extensible rseq ABI"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define KCR_HAVE_TASK_RSEQ_LEN 1
#else
#define KCR_HAVE_TASK_RSEQ_LEN 0
#endif

#define KCR_RSEQ_FIXED_LEN 32	/* before there was rseq_len */

/* The registered area of restartable sequences; *area 0: none. */
static inline void kcr_task_rseq(const struct task_struct *task, u64 *area, u32 *len, u32 *sig)
{
#if !defined(CONFIG_RSEQ)
	*area = 0;
	*len = 0;
	*sig = 0;
#elif KCR_HAVE_TASK_RSEQ_DATA
	*area = (unsigned long)task->rseq.usrptr;
	*len = task->rseq.len;
	*sig = task->rseq.sig;
#else
	*area = (unsigned long)task->rseq;
	*sig = task->rseq_sig;
#if KCR_HAVE_TASK_RSEQ_LEN
	*len = task->rseq_len;
#else
	*len = task->rseq ? KCR_RSEQ_FIXED_LEN : 0;
#endif
#endif
}

/* 7.0: poll's restart_block holds a struct timespec64. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define KCR_HAVE_POLL_TIMESPEC 1
#else
#define KCR_HAVE_POLL_TIMESPEC 0
#endif

static inline bool kcr_poll_has_timeout(const struct restart_block *block)
{
	return block->poll.has_timeout;
}

/* When poll(2) ends, CLOCK_MONOTONIC. */
static inline ktime_t kcr_poll_end(const struct restart_block *block)
{
#if KCR_HAVE_POLL_TIMESPEC
	return timespec64_to_ktime(block->poll.end_time);
#else
	return ktime_set(block->poll.tv_sec, block->poll.tv_nsec);
#endif
}

/* 7.1 (CLONE_AUTOREAP). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define KCR_HAVE_AUTOREAP 1
#else
#define KCR_HAVE_AUTOREAP 0
#endif

/* Does the process leave no zombie, whatever its parent? */
static inline bool kcr_signal_reaps_itself(const struct signal_struct *signal)
{
#if KCR_HAVE_AUTOREAP
	return signal->autoreap;
#else
	return false;
#endif
}

#endif /* KCR_COMPAT_TASK_H */
