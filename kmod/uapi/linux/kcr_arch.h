/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What of the interface depends on the processor: one branch for each of kmod/arch. */
#ifndef _UAPI_LINUX_KCR_ARCH_H
#define _UAPI_LINUX_KCR_ARCH_H

#if defined(__x86_64__)
#define KCR_NR_REGS	27	/* struct user_regs_struct, in its order */
#else
#error "no registers are defined for this processor: see arch/ and kmod/arch/"
#endif

#endif /* _UAPI_LINUX_KCR_ARCH_H */
