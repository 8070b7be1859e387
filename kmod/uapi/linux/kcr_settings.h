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
/* PR_SET_SPECULATION_CTRL: DISABLE, FORCE_DISABLE, DISABLE_NOEXEC of … */
#define KCR_SETTING_STORE_OFF	(1 << 1)	/* … PR_SPEC_STORE_BYPASS */
#define KCR_SETTING_STORE_FORCED (1 << 2)
#define KCR_SETTING_STORE_NOEXEC (1 << 3)
#define KCR_SETTING_BRANCH_OFF	(1 << 4)	/* … PR_SPEC_INDIRECT_BRANCH */
#define KCR_SETTING_BRANCH_FORCED (1 << 5)
#define KCR_SETTING_FLUSH	(1 << 6)	/* PR_SPEC_L1D_FLUSH: ENABLE */

/* PR_SET_SYSCALL_USER_DISPATCH, as the kernel keeps what it was given; all 0: OFF. */
struct kcr_dispatch {
	__u64 on;		/* 0 or 1 */
	__u64 selector;
	__u64 offset;
	__u64 length;
};

/* Those of one thread. */
struct kcr_setting {
	__s32 tid;
	__u32 state;		/* KCR_SETTING_* */
	__u64 timer_slack_ns;	/* PR_SET_TIMERSLACK */
	struct kcr_dispatch dispatch;
};

#define KCR_SETTINGS_MERGE	(1 << 0)	/* PR_SET_MEMORY_MERGE */
#define KCR_SETTINGS_THP_ADVISED (1 << 1)	/* PR_THP_DISABLE_EXCEPT_ADVISED */
#define KCR_SETTINGS_AMX	(1 << 2)	/* ARCH_REQ_XCOMP_PERM, of AMX tiles */

/* Or the caller or an ancestor of it, or not known: there is no Yama, or no BTF. */
#define KCR_TRACER_NONE		0
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
	__u32 state;		/* out: KCR_SETTINGS_* */
	__u32 pad;
};

#endif /* _UAPI_LINUX_KCR_SETTINGS_H */
