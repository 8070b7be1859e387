/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a process's dumpable setting is found.
 */
#ifndef KCR_COMPAT_MM_FLAGS_H
#define KCR_COMPAT_MM_FLAGS_H

#include <linux/sched/coredump.h>

#endif /* KCR_COMPAT_MM_FLAGS_H */
