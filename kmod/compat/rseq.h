/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Restartable sequences: makes the kernel write cpu_id again and check for an
 * interrupted sequence before the calling thread runs user code.  Needed when
 * the registered area was overwritten behind the kernel's back (by FILL).
 */
#ifndef KCR_COMPAT_RSEQ_H
#define KCR_COMPAT_RSEQ_H

#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/version.h>

/* 6.19 (faba9d250eae "rseq: Introduce struct rseq_data"): events are a struct. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define KCR_HAVE_RSEQ_DATA 1
#else
#define KCR_HAVE_RSEQ_DATA 0
#endif

#include <linux/rseq.h>

static inline void kcr_rseq_renew(void)
{
#ifdef CONFIG_RSEQ
#if KCR_HAVE_RSEQ_DATA
	if (!current->rseq.event.has_rseq)
		return;
	/* After a system call, which no sequence may contain, it would not check for one. */
	current->rseq.event.user_irq = true;
	rseq_force_update();
#else
	preempt_disable();
	rseq_preempt(current);
	preempt_enable();
#endif
#endif
}

#endif /* KCR_COMPAT_RSEQ_H */
