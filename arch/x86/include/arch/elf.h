/* SPDX-License-Identifier: GPL-2.0 */
/* Processor-specific parts of ELF cores. */
#ifndef KCR_ARCH_ELF_H
#define KCR_ARCH_ELF_H

#define ARCH_ELF_MACHINE	62	/* EM_X86_64 */
#define ARCH_ELF_XSTATE		0x202	/* NT_X86_XSTATE: the note (owner "LINUX") of xstate.h */

#endif /* KCR_ARCH_ELF_H */
