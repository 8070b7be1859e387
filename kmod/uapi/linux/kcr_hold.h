/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Holding signals back from programs until their supervisor has saved them.  The rules for
 * structures are in kcr.h, which includes this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_HOLD_H
#define _UAPI_LINUX_KCR_HOLD_H

#include <linux/types.h>

#define KCR_HOLD_MAX		1024		/* signals held at once; further ones are delivered */
#define KCR_HOLD_MAX_MS		3600000		/* none is held longer, whatever the limit */

/* SIGHUP, INT, QUIT, USR1, USR2, TERM and XCPU, which ask a program to end.  Bit 0: signal 1. */
#define KCR_HOLD_SIGNALS \
	(1ULL << 0 | 1ULL << 1 | 1ULL << 2 | 1ULL << 9 | 1ULL << 11 | 1ULL << 14 | 1ULL << 23)

/*
 * From now on signals of this set are held back from the descendants of the caller's process,
 * until the job ends, and each for at most limit_ms; what is held already is delivered limit_ms
 * from now at the latest, and with 0 before the call returns.  An empty set: no more are.
 *
 * Held are signals that a process sends to others by kill(2), sigqueue(3) or
 * pidfd_send_signal(2), unless it is the caller or descends from it; not those that the kernel
 * sends, nor those to single threads.  The descendant's user must be the caller's, or the caller
 * have CAP_KILL in the initial user namespace, at the job's first HOLD.  The program does
 * not see a held signal; the sender sees that it is sent.
 * EINVAL: other signals, or a longer limit than KCR_HOLD_MAX_MS; EEXIST: another job of this
 * process holds signals; EOPNOTSUPP: this kernel can't, although KCR_FEATURE_HOLD may say so:
 * signals cannot be seen on their way; EPERM: `hold_signals` is off; ENOMEM.
 */
struct kcr_hold {
	__u32 size;
	__u32 flags;		/* 0 */
	__u64 signals;
	__u64 held;		/* out: those that were held when the call came */
	__u32 limit_ms;
	__u32 pad;
};

#endif /* _UAPI_LINUX_KCR_HOLD_H */
