/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of threads and address spaces that not all kernels have.  Used by settings.c and
 * enter.c only.
 */
#ifndef KCR_COMPAT_SETTINGS_H
#define KCR_COMPAT_SETTINGS_H

#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/thread_info.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/fpu/types.h>
#include <asm/processor.h>

#include "uapi/linux/kcr.h"

/* 5.11: PR_SET_SYSCALL_USER_DISPATCH. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0) && defined(CONFIG_GENERIC_ENTRY)
#define KCR_HAVE_DISPATCH	1
#include <linux/syscall_user_dispatch.h>
#else
#define KCR_HAVE_DISPATCH	0
#endif

/* Of a thread at rest. */
static inline struct kcr_dispatch kcr_task_dispatch(struct task_struct *task)
{
	struct kcr_dispatch dispatch = {};

#if KCR_HAVE_DISPATCH
	if (test_task_syscall_work(task, SYSCALL_USER_DISPATCH)) {
		dispatch.on = 1;
		dispatch.selector = (unsigned long)task->syscall_dispatch.selector;
		dispatch.offset = task->syscall_dispatch.offset;
		dispatch.length = task->syscall_dispatch.len;
	}
#endif
	return dispatch;
}

/* The kernel reads the selector at each system call without a check of its own. */
static inline int kcr_dispatch_check(const struct kcr_dispatch *dispatch)
{
	if (!dispatch->on)
		return dispatch->selector || dispatch->offset || dispatch->length ? -EINVAL : 0;
	if (!KCR_HAVE_DISPATCH)
		return -EOPNOTSUPP;
	return dispatch->on != 1 || dispatch->selector >= TASK_SIZE_MAX ? -EINVAL : 0;
}

/* Of the calling thread, from its next system call on; checked before. */
static inline void kcr_set_dispatch(const struct kcr_dispatch *dispatch)
{
#if KCR_HAVE_DISPATCH
	if (!dispatch->on)
		return;
	current->syscall_dispatch.selector = (char __user *)(unsigned long)dispatch->selector;
	current->syscall_dispatch.offset = dispatch->offset;
	current->syscall_dispatch.len = dispatch->length;
	current->syscall_dispatch.on_dispatch = false;
	set_task_syscall_work(current, SYSCALL_USER_DISPATCH);
#endif
}

/*
 * May its process use AMX tiles (ARCH_REQ_XCOMP_PERM, since 5.16)?  The leader of a process knows.
 * Since 6.16 the state of the FPU is behind the task, where x86_task_fpu() finds it, which kernels
 * with CONFIG_X86_DEBUG_FPU do not export.
 */
static inline bool kcr_has_amx(struct task_struct *leader)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	const struct fpu *fpu = (const void *)(leader + 1);

	return READ_ONCE(fpu->perm.__state_perm) & XFEATURE_MASK_XTILE_DATA;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
	return READ_ONCE(leader->thread.fpu.perm.__state_perm) & XFEATURE_MASK_XTILE_DATA;
#else
	return false;
#endif
}

static inline bool kcr_mm_has_flag(struct mm_struct *mm, int flag)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return mm_flags_test(flag, mm);
#else
	return test_bit(flag, &mm->flags);
#endif
}

/*
 * KCR_SETTINGS_* of an address space to which the caller has a reference: PR_SET_MEMORY_MERGE,
 * since 6.4, and PR_THP_DISABLE_EXCEPT_ADVISED, since 6.18.
 */
static inline u32 kcr_mm_settings(struct mm_struct *mm)
{
	u32 settings = 0;

#ifdef MMF_VM_MERGE_ANY
	if (kcr_mm_has_flag(mm, MMF_VM_MERGE_ANY))
		settings |= KCR_SETTINGS_MERGE;
#endif
#ifdef MMF_DISABLE_THP_EXCEPT_ADVISED
	if (kcr_mm_has_flag(mm, MMF_DISABLE_THP_EXCEPT_ADVISED))
		settings |= KCR_SETTINGS_THP_ADVISED;
#endif
	return settings;
}

#endif /* KCR_COMPAT_SETTINGS_H */
