/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and what prctl(2) and arch_prctl(2) have set of a process and the kernel tells only
 * to some or to nobody.  The rules for structures are in kcr.h, which includes this file.
 * See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_SETTINGS_H
#define _UAPI_LINUX_KCR_SETTINGS_H

#include <linux/types.h>

#define KCR_SETTING_NO_CPUID	(1 << 0)	/* ARCH_SET_CPUID: the instruction faults */

/* Those of one thread. */
struct kcr_setting {
	__s32 tid;
	__u32 state;		/* KCR_SETTING_* */
	__u64 timer_slack_ns;	/* PR_SET_TIMERSLACK */
};

#define KCR_TRACER_NONE		0	/* … or not known: this kernel has no Yama, or no BTF */
#define KCR_TRACER_ANY		1
#define KCR_TRACER_ONE		2	/* of the job */
#define KCR_TRACER_OTHER	3	/* not of the job */

/* Lists the settings of the threads of a process.  ENOSPC: count returns what is needed. */
struct kcr_settings {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 settings;		/* struct kcr_setting[count] */
	__u32 tracing;		/* out: KCR_TRACER_*: who may trace it by PR_SET_PTRACER */
	__s32 tracer;		/* out: the PID of ONE, else 0 */
};

#endif /* _UAPI_LINUX_KCR_SETTINGS_H */
