// SPDX-License-Identifier: GPL-2.0
/*
 * Registers are read through the kernel's regsets, and set in the pt_regs with which a
 * thread returns to user mode.
 */
#include <linux/elf.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/regset.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/user.h>
#include <asm/segment.h>

#include "arch/x86/registers.h"
#include "uapi/linux/kcr.h"

/* The flags that a restart takes over from the saved flags register. */
#define USER_FLAGS (X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | \
		    X86_EFLAGS_SF | X86_EFLAGS_DF | X86_EFLAGS_OF | X86_EFLAGS_AC | \
		    X86_EFLAGS_ID)

static const struct user_regset *find_regset(unsigned int note)
{
	/* The caller is a 64-bit program: there is no compat ioctl. */
	const struct user_regset_view *view = task_user_regset_view(current);
	unsigned int i;

	for (i = 0; i < view->n; i++)
		if (view->regsets[i].core_note_type == note)
			return &view->regsets[i];
	return NULL;
}

static int read_regset(struct task_struct *task, const struct user_regset *regset,
		       void *buffer, size_t size)
{
	return regset->regset_get(task, regset, (struct membuf){ buffer, size });
}

u32 kcr_xstate_size(void)
{
	const struct user_regset *xstate = find_regset(NT_X86_XSTATE);

	return xstate ? xstate->n * xstate->size : 0;
}

int kcr_xstate_read(struct task_struct *task, void *buffer)
{
	const struct user_regset *xstate = find_regset(NT_X86_XSTATE);

	if (!xstate)
		return -EOPNOTSUPP;
	return read_regset(task, xstate, buffer, xstate->n * xstate->size);
}

/* Without FSGSBASE the base of an LDT segment is looked up under a mutex. */
static bool bases_are_in_memory(const struct task_struct *task)
{
	return boot_cpu_has(X86_FEATURE_FSGSBASE) ||
	       !((task->thread.fsindex | task->thread.gsindex) & SEGMENT_TI_MASK);
}

int kcr_registers_read(struct task_struct *task, u64 *regs)
{
	const struct user_regset *general = find_regset(NT_PRSTATUS);

	BUILD_BUG_ON(KCR_NR_REGS * sizeof(*regs) != sizeof(struct user_regs_struct));
	if (!general || !bases_are_in_memory(task))
		return -EOPNOTSUPP;
	return read_regset(task, general, regs, sizeof(struct user_regs_struct));
}

bool kcr_has_thread_segments(const struct task_struct *task)
{
	return memchr_inv(task->thread.tls_array, 0, sizeof(task->thread.tls_array));
}

int kcr_registers_check(const u64 *saved)
{
	const struct user_regs_struct *regs = (const struct user_regs_struct *)saved;

	/* Code and stack segments are the caller's own: those of 64-bit programs. */
	if (current_pt_regs()->cs != __USER_CS)
		return -EINVAL;
	return regs->ip >= TASK_SIZE_MAX || regs->sp >= TASK_SIZE_MAX ? -EINVAL : 0;
}

void kcr_registers_set(const u64 *saved)
{
	const struct user_regs_struct *regs = (const struct user_regs_struct *)saved;
	struct pt_regs *to = current_pt_regs();

	to->r15 = regs->r15;
	to->r14 = regs->r14;
	to->r13 = regs->r13;
	to->r12 = regs->r12;
	to->bp = regs->bp;
	to->bx = regs->bx;
	to->r11 = regs->r11;
	to->r10 = regs->r10;
	to->r9 = regs->r9;
	to->r8 = regs->r8;
	to->ax = regs->ax;
	to->cx = regs->cx;
	to->dx = regs->dx;
	to->si = regs->si;
	to->di = regs->di;
	to->ip = regs->ip;
	to->sp = regs->sp;
	to->flags = (to->flags & ~USER_FLAGS) | (regs->flags & USER_FLAGS);
	to->orig_ax = -1;	/* no system call to finish */
}
