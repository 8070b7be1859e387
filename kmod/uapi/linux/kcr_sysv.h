/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and what the end of a process undoes of its operations on System V semaphores, which
 * the kernel tells nobody.  The rules for structures are in kcr.h, which includes this file.
 * See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_SYSV_H
#define _UAPI_LINUX_KCR_SYSV_H

#include <linux/types.h>

/* What is added to a semaphore when the process ends (SEM_UNDO); never 0. */
struct kcr_undo {
	__s32 set;		/* the ID of its set */
	__u16 number;		/* in the set */
	__s16 adjustment;
};

/* Of those that are listed: */
#define KCR_UNDOS_SHARED	(1 << 0)	/* they are another process's, too (CLONE_SYSVSEM) */
#define KCR_UNDOS_SEVERAL	(1 << 1)	/* not all are those of all threads */

/*
 * Lists the adjustments of a process.  ENOSPC: count returns what is needed; E2BIG: its sets have
 * more semaphores than a call can look at; EOPNOTSUPP: it may have some, but the kernel does not
 * describe its types.
 */
struct kcr_undos {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 undos;		/* struct kcr_undo[count] */
	__u32 state;		/* out: KCR_UNDOS_* */
	__u32 pad;
};

#endif /* _UAPI_LINUX_KCR_SYSV_H */
