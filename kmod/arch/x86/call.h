/* SPDX-License-Identifier: GPL-2.0 */
/*
 * System calls in the saved registers of a thread.  (For a thread in the kernel
 * there is asm/syscall.h.)
 */
#ifndef KCR_ARCH_CALL_H
#define KCR_ARCH_CALL_H

#include <linux/types.h>
#include <asm/ptrace.h>
#include <asm/user.h>

#define KCR_CALL_BYTES	2	/* of the instruction */

/* The kernel's function for a system call, which takes its arguments as registers. */
#define KCR_CALL_SYMBOL(name)	"__x64_sys_" name

/* The call that was interrupted; negative: none. */
static inline int kcr_call_nr(const struct user_regs_struct *regs)
{
	return regs->orig_ax;
}

/* The return value, or the number of the call that the next instruction would make. */
static inline long kcr_call_result(const struct user_regs_struct *regs)
{
	return regs->ax;
}

static inline unsigned long kcr_call_second_argument(const struct user_regs_struct *regs)
{
	return regs->si;
}

static inline unsigned long kcr_call_third_argument(const struct user_regs_struct *regs)
{
	return regs->dx;
}

static inline void kcr_call_set_third_argument(struct user_regs_struct *regs, u64 value)
{
	regs->dx = value;
}

static inline void kcr_call_return(struct user_regs_struct *regs, long result)
{
	regs->ax = result;
}

/* Arguments of a call by KCR_CALL_SYMBOL. */
static inline void kcr_call_set_arguments(struct pt_regs *regs, const unsigned long argument[6])
{
	regs->di = argument[0];
	regs->si = argument[1];
	regs->dx = argument[2];
	regs->r10 = argument[3];
	regs->r8 = argument[4];
	regs->r9 = argument[5];
}

/* Steps back to the instruction, to make call `nr` with the same arguments. */
static inline void kcr_call_again(struct user_regs_struct *regs, long nr)
{
	regs->ax = nr;
	regs->ip -= KCR_CALL_BYTES;
}

/* Of a thread in the kernel that was to make its call again: interrupted with `result`. */
static inline void kcr_call_undo_again(struct pt_regs *regs, long result)
{
	regs->ax = result;
	regs->ip += KCR_CALL_BYTES;
}

/* The inverse of kcr_call_again(), likewise: the call was made, and interrupted. */
static inline void kcr_call_interrupted(struct pt_regs *regs, long result)
{
	regs->orig_ax = regs->ax;
	kcr_call_undo_again(regs, result);
}

/* Not a call any more for the kernel, which would restart it once more. */
static inline void kcr_call_forget(struct user_regs_struct *regs)
{
	regs->orig_ax = -1;
}

#endif /* KCR_ARCH_CALL_H */
