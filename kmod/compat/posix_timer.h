/* SPDX-License-Identifier: GPL-2.0 */
/*
 * POSIX timers: their list, their state and their prepared signal.
 */
#ifndef KCR_COMPAT_POSIX_TIMER_H
#define KCR_COMPAT_POSIX_TIMER_H

#include <linux/list.h>
#include <linux/posix-timers.h>
#include <linux/sched/signal.h>
#include <linux/version.h>

/* 6.12 (aca1dc0ce128 "posix-timers: Convert list to hlist"), backported by Debian's 6.12 too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define KCR_HAVE_TIMER_HLIST 1
#else
#define KCR_HAVE_TIMER_HLIST 0
#endif

/* The timer after this one in its process's list, for NULL the first.  siglock held. */
static inline struct k_itimer *kcr_posix_timer_after(struct signal_struct *signal,
						     const struct k_itimer *timer)
{
#if KCR_HAVE_TIMER_HLIST
	struct hlist_node *next = timer ? timer->list.next : signal->posix_timers.first;

	return hlist_entry_safe(next, struct k_itimer, list);
#else
	struct list_head *next = timer ? timer->list.next : signal->posix_timers.next;

	return next == &signal->posix_timers ? NULL : list_entry(next, struct k_itimer, list);
#endif
}

/* 6.13 (6017a158beb1 "posix-timers: Embed sigqueue in struct k_itimer"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define KCR_HAVE_TIMER_SIGQUEUE 1
#else
#define KCR_HAVE_TIMER_SIGQUEUE 0
#endif

static inline const kernel_siginfo_t *kcr_posix_timer_info(const struct k_itimer *timer)
{
#if KCR_HAVE_TIMER_SIGQUEUE
	return &timer->sigq.info;
#else
	return &timer->sigq->info;
#endif
}

/* Is it running?  A periodic timer whose signal is still queued need not be. */
static inline bool kcr_posix_timer_armed(const struct k_itimer *timer)
{
#if KCR_HAVE_TIMER_SIGQUEUE
	return READ_ONCE(timer->it_status);
#else
	return READ_ONCE(timer->it_active);
#endif
}

static inline u64 kcr_cpu_timer_expires(const struct cpu_timer *timer)
{
	return timer->node.expires;
}

#endif /* KCR_COMPAT_POSIX_TIMER_H */
