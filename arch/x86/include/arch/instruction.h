/* SPDX-License-Identifier: GPL-2.0 */
/* Recognising instructions of a program. */
#ifndef KCR_ARCH_INSTRUCTION_H
#define KCR_ARCH_INSTRUCTION_H

#include <stdbool.h>
#include <string.h>

#define ARCH_CALL_LENGTH	2	/* bytes of the instruction for a system call */

/* Do these ARCH_CALL_LENGTH bytes make a system call? */
static inline bool arch_is_call(const void *code)
{
	return !memcmp(code, "\x0f\x05", ARCH_CALL_LENGTH);
}

#endif /* KCR_ARCH_INSTRUCTION_H */
