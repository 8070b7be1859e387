// SPDX-License-Identifier: GPL-2.0
/* Names of registers.  See arch/registers.h. */
#include "arch/registers.h"

#define SHOWN(name)	{ #name, ARCH_REGISTER(name) }

const struct arch_shown arch_shown[ARCH_NR_SHOWN] = {
	SHOWN(rax), SHOWN(rbx), SHOWN(rcx), SHOWN(rdx),
	SHOWN(rsi), SHOWN(rdi), SHOWN(rbp), SHOWN(rsp),
	SHOWN(r8), SHOWN(r9), SHOWN(r10), SHOWN(r11),
	SHOWN(r12), SHOWN(r13), SHOWN(r14), SHOWN(r15),
	SHOWN(rip), { "eflags", ARCH_REGISTER(eflags) }, SHOWN(fs_base), SHOWN(gs_base),
};
