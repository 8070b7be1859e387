/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interrupted system calls.
 */
#ifndef KCR_SYSCALL_H
#define KCR_SYSCALL_H

#include <linux/sched.h>
#include <asm/user.h>

#include "uapi/linux/kcr.h"

struct pt_regs;

/*
 * In a thread on its way to user mode, before signals are handled: a call
 * that was interrupted only by us will restart instead of failing with EINTR.
 */
void kcr_hide_eintr(struct pt_regs *regs);

/*
 * Of the calling thread, whose work runs inside a system call: io_uring_enter(2) that submits
 * nothing, but waits?  The thread may rest there: it has done nothing that another call of the
 * same kind would not do.
 */
bool kcr_syscall_may_rest(struct pt_regs *regs);

/* Where and how a call was interrupted, as long as the kernel has not decided on it. */
struct kcr_interruption {
	unsigned long ip;
	long result;			/* -ERESTART…; 0: it was not */
};

/* Of a thread that is off its CPU, or the calling one. */
void kcr_syscall_note(struct task_struct *task, struct kcr_interruption *note);
/*
 * If the kernel has decided since then that the calling thread makes the call again, the call
 * is interrupted as before, and the kernel decides once more.
 */
void kcr_syscall_interrupt_again(const struct kcr_interruption *note);
/*
 * Is the calling thread about to make its call again?  (Or it has returned its own number.)
 */
bool kcr_syscall_is_repeated(struct pt_regs *regs);

/*
 * For kernels that have looked for signals before the works run: if one has come since then
 * whose handler interrupts the call of the calling thread, the call fails now.
 */
void kcr_syscall_see_signals(void);

/*
 * Makes the saved registers of a resting thread ready to run: an interrupted
 * call starts again, or goes on with *saved (zeroed on entry), which says as well
 * what a signal's handler does to it.
 */
void kcr_syscall_restart(const struct task_struct *task, struct user_regs_struct *regs,
			 struct kcr_restart_block *saved);

/* Can a thread go on with this?  0, -EINVAL, -EOPNOTSUPP (not on this kernel). */
int kcr_syscall_check_block(const struct kcr_restart_block *saved);
/* Sets the checked block for the calling thread. */
void kcr_syscall_set_block(const struct kcr_restart_block *saved);
/*
 * Makes the call that the calling thread is about to make in user mode one that was
 * interrupted (checked; nothing if no signal may interrupt it).  True: it must go through the
 * handling of signals now, whose end makes the call again or lets it return EINTR.
 */
bool kcr_syscall_set_interrupted(const struct kcr_restart_block *saved);

#endif /* KCR_SYSCALL_H */
