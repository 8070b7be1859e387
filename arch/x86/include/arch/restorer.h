/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The machine code of the restorer (rebuild/restorer.c), and the jump into it.  It must
 * be part of functions there, which are copied without the rest of the program:
 * everything is inline, and nothing may make the compiler call another function.
 */
#ifndef KCR_ARCH_RESTORER_H
#define KCR_ARCH_RESTORER_H

#include <stdint.h>

#define ARCH_INLINE static inline __attribute__((always_inline))

/* Returns what the kernel returns: a negative errno on failure. */
ARCH_INLINE int64_t arch_system_call(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
				     uint64_t a4, uint64_t a5)
{
	register uint64_t r10 __asm__("r10") = a3;
	register uint64_t r8 __asm__("r8") = a4;
	register uint64_t r9 __asm__("r9") = a5;
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/*
 * A system call that creates a thread.  The child has another stack, pops the word on
 * top of it and calls restorer_run() with that.
 */
ARCH_INLINE int64_t arch_clone(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	int64_t result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "call restorer_run\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2)
			 : "rcx", "r11", "memory");
	return result;
}

/*
 * Loads floating point and vectors from xstate, prepared by arch_xstate_put(), and
 * makes the system call nr(a0, a1, a2); nothing in between may touch them.
 */
ARCH_INLINE int64_t arch_enter(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t xstate)
{
	int64_t result;

	__asm__ volatile("mov $-1, %%eax\n\t"
			 "mov $-1, %%edx\n\t"
			 "xrstor64 (%[xstate])\n\t"
			 "mov %[nr], %%rax\n\t"
			 "mov %[a2], %%rdx\n\t"
			 "syscall"
			 : "=&a"(result)
			 : [xstate] "r"(xstate), [nr] "r"(nr), [a2] "r"(a2), "D"(a0), "S"(a1)
			 : "rcx", "rdx", "r11", "memory");
	return result;
}

/* In place of memcpy(3), which is not available. */
ARCH_INLINE void arch_copy(uint64_t to, uint64_t from, uint64_t length)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

/* Calls a function with one argument, on a stack below top.  Does not return. */
ARCH_INLINE __attribute__((noreturn)) void arch_run(uint64_t function, uint64_t argument,
						    uint64_t top)
{
	/* As after a call: the stack is 8 bytes off its alignment. */
	uint64_t stack = (top & ~15ull) - 8;

	__asm__ volatile("mov %[stack], %%rsp\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "jmp *%[run]"
			 :
			 : [stack] "r"(stack), [run] "r"(function), "D"(argument)
			 : "memory");
	__builtin_unreachable();
}

#endif /* KCR_ARCH_RESTORER_H */
