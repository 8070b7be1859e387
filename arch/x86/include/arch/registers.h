/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The general registers of a thread: indices into an array of KCR_NR_REGS in the
 * order of struct user_regs_struct, as in the module's calls and in context files.
 * Floating point and vectors are in xstate.h.
 */
#ifndef KCR_ARCH_REGISTERS_H
#define KCR_ARCH_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define ARCH_REGISTER(name)	(offsetof(struct user_regs_struct, name) / sizeof(uint64_t))

enum {
	ARCH_IP = ARCH_REGISTER(rip),		/* the next instruction */
	/* Number and arguments of a system call that is about to be made. */
	ARCH_CALL_NR = ARCH_REGISTER(rax),
	ARCH_CALL_ARG0 = ARCH_REGISTER(rdi),
	ARCH_CALL_ARG1 = ARCH_REGISTER(rsi),
	ARCH_CALL_ARG2 = ARCH_REGISTER(rdx),
};

/* Does the thread run 32-bit code, as a 64-bit program may? */
bool arch_is_32bit(const uint64_t *regs);

/* Registers that are worth showing, in the order of debuggers. */
#define ARCH_NR_SHOWN	20
extern const struct arch_shown {
	const char *name;
	unsigned int place;
} arch_shown[ARCH_NR_SHOWN];

#endif /* KCR_ARCH_REGISTERS_H */
