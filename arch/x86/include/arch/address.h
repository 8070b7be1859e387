/* SPDX-License-Identifier: GPL-2.0 */
/* User addresses. */
#ifndef KCR_ARCH_ADDRESS_H
#define KCR_ARCH_ADDRESS_H

/* The end of user addresses for a process that never asked for more than 47 bits. */
#define ARCH_USER_END	0x7ffffffff000ull

#endif /* KCR_ARCH_ADDRESS_H */
