/* SPDX-License-Identifier: GPL-2.0 */
/* User addresses, and the keys that protect memory. */
#ifndef KCR_ARCH_ADDRESS_H
#define KCR_ARCH_ADDRESS_H

/* The end of user addresses for a process that never asked for more than 47 bits. */
#define ARCH_USER_END	0x7ffffffff000ull

/* The largest page that the kernel may make of its own accord. */
#define ARCH_HUGE_PAGE	(2u << 20)

/* As many protection keys (pkeys(7)) has a process, on processors that have them at all. */
#define ARCH_MEMORY_KEYS 16u

#endif /* KCR_ARCH_ADDRESS_H */
