/* SPDX-License-Identifier: GPL-2.0 */
/* Functions of a vdso, and code to replace them. */
#ifndef KCR_ARCH_VDSO_H
#define KCR_ARCH_VDSO_H

#include <stdint.h>

#define ARCH_JUMP_LENGTH	12	/* bytes of arch_put_jump() */
#define ARCH_STUB_LENGTH	8	/* bytes of arch_put_stub() */

/* A jump of which only the first byte is written: the next ones, as they are, say where to. */
#define ARCH_FAR_LENGTH		5
#define ARCH_FAR_OPCODE		0xe9

/* The system call that is equivalent to the function of this name, or -1. */
long arch_vdso_call(const char *name);

/* Writes a jump to any address, at the beginning of a function. */
void arch_put_jump(uint8_t *at, uint64_t target);

/* Writes a whole function: a system call with the function's own arguments. */
void arch_put_stub(uint8_t *at, uint32_t nr);

/* Where that leads from `address`, where the bytes at `at` are. */
uint64_t arch_far_target(const uint8_t *at, uint64_t address);

#endif /* KCR_ARCH_VDSO_H */
