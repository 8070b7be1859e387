/* SPDX-License-Identifier: GPL-2.0 */
/* Thread-local storage, and what the C library keeps there. */
#ifndef KCR_ARCH_THREAD_H
#define KCR_ARCH_THREAD_H

#include <stdint.h>

#define ARCH_RSEQ_SIGNATURE	0x53053053u	/* glibc's, of restartable sequences */

/*
 * The line of /proc/PID/status with the features that a thread uses, since Linux 6.6 on
 * processors with CET, and the name of shadow stacks in it (Documentation/arch/x86/shstk.rst).
 */
#define ARCH_STATUS_FEATURES	"x86_Thread_features"
#define ARCH_SHADOW_STACK	"shstk"

/*
 * Since Linux 6.4, with LAM: the bits of an address that count, as a hexadecimal number
 * (Documentation/arch/x86/, fs/proc/array.c).
 */
#define ARCH_STATUS_UNTAG_MASK	"untag_mask"

/* The calling thread's thread pointer, the base of the C library's offsets (__rseq_offset). */
static inline char *arch_thread_pointer(void)
{
	char *pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* System calls by which a thread gets its saved thread-local storage. */
#define ARCH_NR_TLS_CALLS	2
struct arch_tls_call {
	const char *label;		/* names it in messages */
	long nr;
	uint64_t argument[2];
};

/* regs: the saved registers, as in registers.h. */
void arch_tls_calls(const uint64_t *regs, struct arch_tls_call call[ARCH_NR_TLS_CALLS]);

/*
 * Asks for the right of the calling process to use AMX tiles (Documentation/arch/x86/xstate.rst).
 * 0 or -errno: ENODEV, for one, where the processor has none.
 */
int arch_request_amx(void);

#endif /* KCR_ARCH_THREAD_H */
