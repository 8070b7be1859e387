/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers of system calls that are newer than the oldest supported kernel.
 */
#ifndef KCR_COMPAT_SYSCALL_H
#define KCR_COMPAT_SYSCALL_H

#include <asm/unistd.h>

/* 5.11 (b0a0c2615f6f "epoll: wire up syscall epoll_pwait2"). */
#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif

#endif /* KCR_COMPAT_SYSCALL_H */
