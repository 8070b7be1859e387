/* SPDX-License-Identifier: GPL-2.0 */
/* Protection keys of memory (pkeys(7)): which of them a process has allocated. */
#ifndef KCR_ARCH_KEYS_H
#define KCR_ARCH_KEYS_H

#include <linux/mm_types.h>
#include <linux/types.h>

#include <asm/cpufeature.h>

/*
 * *allocated: a bit for each, that of key 0 is always set; 0: this processor has none.
 * *execute: the one that the kernel uses for execute-only memory, and is not among these;
 * 0: none.  mmap_lock held.
 */
static inline void kcr_mm_keys(const struct mm_struct *mm, u32 *allocated, u32 *execute)
{
	*allocated = 0;
	*execute = 0;
#ifdef CONFIG_X86_INTEL_MEMORY_PROTECTION_KEYS
	if (!boot_cpu_has(X86_FEATURE_OSPKE))
		return;
	*allocated = mm->context.pkey_allocation_map;
	if (mm->context.execute_only_pkey > 0) {
		*execute = mm->context.execute_only_pkey;
		*allocated &= ~(1u << *execute);
	}
#endif
}

#endif /* KCR_ARCH_KEYS_H */
