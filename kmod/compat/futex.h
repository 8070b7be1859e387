/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flags of a waiting futex in its restart_block.  Their values are internal
 * to the kernel and have changed; the interface (data[1] of a
 * KCR_RESTART_FUTEX) uses the KCR_FUTEX_* values.
 */
#ifndef KCR_COMPAT_FUTEX_H
#define KCR_COMPAT_FUTEX_H

#include <linux/types.h>
#include <linux/version.h>

#include "uapi/linux/kcr.h"

/* 6.7 (5694289ce183 "futex: Flag conversion"): new values, size bits. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define KCR_HAVE_FUTEX_SIZE_FLAGS 1
#else
#define KCR_HAVE_FUTEX_SIZE_FLAGS 0
#endif

#if KCR_HAVE_FUTEX_SIZE_FLAGS
#define KCR_KFUTEX_U32		0x02
#define KCR_KFUTEX_SHARED	0x10
#define KCR_KFUTEX_CLOCKRT	0x20
#define KCR_KFUTEX_TIMEOUT	0x40
#else
#define KCR_KFUTEX_U32		0x00
#define KCR_KFUTEX_SHARED	0x01
#define KCR_KFUTEX_CLOCKRT	0x02
#define KCR_KFUTEX_TIMEOUT	0x04
#endif

static inline u32 kcr_futex_flags_get(u32 kernel)
{
	return (kernel & KCR_KFUTEX_SHARED ? KCR_FUTEX_SHARED : 0) |
	       (kernel & KCR_KFUTEX_CLOCKRT ? KCR_FUTEX_REALTIME : 0) |
	       (kernel & KCR_KFUTEX_TIMEOUT ? KCR_FUTEX_TIMEOUT : 0);
}

static inline u32 kcr_futex_flags_set(u32 abi)
{
	return KCR_KFUTEX_U32 |
	       (abi & KCR_FUTEX_SHARED ? KCR_KFUTEX_SHARED : 0) |
	       (abi & KCR_FUTEX_REALTIME ? KCR_KFUTEX_CLOCKRT : 0) |
	       (abi & KCR_FUTEX_TIMEOUT ? KCR_KFUTEX_TIMEOUT : 0);
}

#endif /* KCR_COMPAT_FUTEX_H */
