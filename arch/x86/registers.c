// SPDX-License-Identifier: GPL-2.0
/* Names of registers.  See arch/registers.h. */
#include "arch/registers.h"

/* Selectors of the kernel's 32-bit code segment, and of Xen's: <asm/segment.h>. */
#define USER32_CS	0x23
#define XEN_USER32_CS	0xe023

bool arch_is_32bit(const uint64_t *regs)
{
	uint64_t selector = regs[ARCH_REGISTER(cs)];

	return selector == USER32_CS || selector == XEN_USER32_CS;
}

#define SHOWN(name)	{ #name, ARCH_REGISTER(name) }

const struct arch_shown arch_shown[ARCH_NR_SHOWN] = {
	SHOWN(rax), SHOWN(rbx), SHOWN(rcx), SHOWN(rdx),
	SHOWN(rsi), SHOWN(rdi), SHOWN(rbp), SHOWN(rsp),
	SHOWN(r8), SHOWN(r9), SHOWN(r10), SHOWN(r11),
	SHOWN(r12), SHOWN(r13), SHOWN(r14), SHOWN(r15),
	SHOWN(rip), { "eflags", ARCH_REGISTER(eflags) }, SHOWN(fs_base), SHOWN(gs_base),
};
