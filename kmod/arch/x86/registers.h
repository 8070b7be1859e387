/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The registers of a thread.  The general ones are an array of KCR_NR_REGS, in the
 * order of struct user_regs_struct; the others are a block of kcr_xstate_size()
 * bytes, as debuggers see it.
 */
#ifndef KCR_ARCH_REGISTERS_H
#define KCR_ARCH_REGISTERS_H

#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

u32 kcr_xstate_size(void);

/*
 * Of a thread at rest, whose state is in memory (it is off its CPU).  Does not
 * sleep.  -EOPNOTSUPP: they cannot be read here; or an -errno of the kernel.
 */
int kcr_registers_read(struct task_struct *task, u64 *regs);
int kcr_xstate_read(struct task_struct *task, void *xstate);

/* Has it given up reading the time stamp counter (PR_SET_TSC)? */
static inline bool kcr_tsc_is_off(struct task_struct *task)
{
	return test_tsk_thread_flag(task, TIF_NOTSC);
}

/* Does CPUID fault in it (ARCH_SET_CPUID)? */
static inline bool kcr_cpuid_is_off(struct task_struct *task)
{
	return test_tsk_thread_flag(task, TIF_NOCPUID);
}

/* PR_SPEC_L1D_FLUSH, since 5.15. */
static inline bool kcr_flushes_cache(struct task_struct *task)
{
#ifdef TIF_SPEC_L1D_FLUSH
	return test_tsk_thread_flag(task, TIF_SPEC_L1D_FLUSH);
#else
	return false;
#endif
}

/* May it use I/O ports (ioperm(2), iopl(2))? */
static inline bool kcr_has_ports(const struct task_struct *task)
{
#ifdef CONFIG_X86_IOPL_IOPERM
	return READ_ONCE(task->thread.io_bitmap) || READ_ONCE(task->thread.iopl_emul);
#else
	return false;
#endif
}

/* Has the process segments of its own (modify_ldt(2))?  The caller has a reference to the structure. */
static inline bool kcr_has_segments(const struct mm_struct *mm)
{
#ifdef CONFIG_MODIFY_LDT_SYSCALL
	return READ_ONCE(mm->context.ldt);
#else
	return false;
#endif
}

/* Has it segments that are its own alone (set_thread_area(2), as 32-bit code uses)? */
bool kcr_has_thread_segments(const struct task_struct *task);

/* May the calling thread run on with these?  0 or -EINVAL. */
int kcr_registers_check(const u64 *regs);
/* Sets them, for the return to user mode; xstate is not changed. */
void kcr_registers_set(const u64 *regs);

#endif /* KCR_ARCH_REGISTERS_H */
