/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workqueues whose works run on the CPU that has queued them.
 */
#ifndef KCR_COMPAT_WORKQUEUE_H
#define KCR_COMPAT_WORKQUEUE_H

#include <linux/version.h>
#include <linux/workqueue.h>

/* 6.17 (930c2ea566af "workqueue: Add new WQ_PERCPU flag"); the default before. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define KCR_WQ_PERCPU	WQ_PERCPU
#else
#define KCR_WQ_PERCPU	0
#endif

#endif /* KCR_COMPAT_WORKQUEUE_H */
