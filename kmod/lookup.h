/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel functions that are not exported everywhere, resolved when the
 * module loads and called through static calls (IBT-safe).  How symbols are
 * found is known to lookup.c only.
 */
#ifndef KCR_LOOKUP_H
#define KCR_LOOKUP_H

#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/task_work.h>

struct btf;
struct btf_type;
struct file;
struct kernel_siginfo;
struct pt_regs;

/* As the kernel's functions of these names. */
int kcr_task_work_add(struct task_struct *task, struct callback_head *work,
		      enum task_work_notify_mode notify);
/* -EOPNOTSUPP if the symbols could not be found: see kcr_have_clone(). */
pid_t kcr_kernel_clone(struct kernel_clone_args *args);
long kcr_kernel_wait4(pid_t pid, int options);
bool kcr_have_clone(void);

/* As the kernel's do_send_sig_info(); only if it was found. */
int kcr_send_sig_info(int signal, struct kernel_siginfo *info, struct task_struct *task,
		      enum pid_type type);
bool kcr_have_send_sig_info(void);

/* As the kernel's functions of these names; the second returns 0 without CONFIG_SECURITY. */
bool kcr_ptrace_may_access(struct task_struct *task, unsigned int mode);
int kcr_security_file_receive(struct file *file);

/* The kernel's description of its own types, which stays; NULL: none.  May sleep. */
const struct btf *kcr_btf(void);
/* For one that kcr_btf() has returned; as btf_find_by_name_kind(), btf_type_by_id() and … */
s32 kcr_btf_find(const struct btf *btf, const char *name, u8 kind);
const struct btf_type *kcr_btf_type_by_id(const struct btf *btf, u32 id);
/* … btf_name_by_offset() */
const char *kcr_btf_name(const struct btf *btf, u32 offset);

/* io_uring_enter(2); -EOPNOTSUPP: there is none. */
long kcr_io_uring_enter(const struct pt_regs *arguments);

/* May the task trace this one, for all that Landlock says?  0 (or there is none), or -EPERM. */
int kcr_landlock_traceme(struct task_struct *tracer);

/* Yama's list of who may trace whom, of struct ptrace_relation, under RCU; NULL: not found. */
const struct list_head *kcr_ptracer_relations(void);

/* Addresses for comparison and for rebuilding a restart_block; 0: unknown. */
unsigned long kcr_nanosleep_restart(void);
unsigned long kcr_futex_wait_restart(void);
unsigned long kcr_poll_restart(void);

/* As stack_trace_save_tsk(); 0: it was not found. */
unsigned int kcr_stack_trace(struct task_struct *task, unsigned long *frames, unsigned int count);

/* Removes a queued work from another task, true if it had not run. */
bool kcr_task_work_cancel(struct task_struct *task, struct callback_head *work);

/* 0, or -ENOENT after naming the missing symbol in the log. */
int kcr_lookup_init(void);

#endif /* KCR_LOOKUP_H */
