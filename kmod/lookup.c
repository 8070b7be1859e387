// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel functions that are not exported everywhere.  A disabled kprobe gives
 * the address of a symbol without patching anything; the answer is checked
 * against the symbol table before it is used.  Calls go through static calls:
 * on kernels with IBT the functions' ENDBR may be sealed, and only a direct
 * call reaches them.  Nothing here changes after kcr_lookup_init().
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/signal.h>
#include <linux/string.h>

#include "arch/x86/call.h"
#include "compat/call.h"
#include "lookup.h"

typedef int task_work_add_fn(struct task_struct *task, struct callback_head *work,
			     enum task_work_notify_mode notify);
typedef pid_t kernel_clone_fn(struct kernel_clone_args *args);
typedef long kernel_wait4_fn(pid_t pid, int __user *status, int options, struct rusage *usage);
typedef bool ptrace_may_access_fn(struct task_struct *task, unsigned int mode);
typedef int security_file_receive_fn(struct file *file);
typedef int landlock_traceme_fn(struct task_struct *tracer);
typedef unsigned long lookup_name_fn(const char *name);
typedef long system_call_fn(const struct pt_regs *arguments);
typedef unsigned int stack_trace_fn(struct task_struct *task, unsigned long *frames,
				    unsigned int count, unsigned int skip);
typedef typeof(const struct btf *) get_btf_fn(void);
typedef s32 btf_find_fn(const struct btf *btf, const char *name, u8 kind);
typedef const struct btf_type *btf_type_fn(const struct btf *btf, u32 id);
typedef const char *btf_name_fn(const struct btf *btf, u32 offset);

KCR_DEFINE_CALL(kcr_call_task_work_add, task_work_add_fn);
KCR_DEFINE_CALL(kcr_call_kernel_clone, kernel_clone_fn);
KCR_DEFINE_CALL(kcr_call_kernel_wait4, kernel_wait4_fn);
KCR_DEFINE_CALL(kcr_call_ptrace_may_access, ptrace_may_access_fn);
KCR_DEFINE_CALL(kcr_call_security_file_receive, security_file_receive_fn);
KCR_DEFINE_CALL(kcr_call_do_send_sig_info, typeof(do_send_sig_info));
KCR_DEFINE_CALL(kcr_call_io_uring_enter, system_call_fn);
KCR_DEFINE_CALL(kcr_call_landlock_create, system_call_fn);
KCR_DEFINE_CALL(kcr_call_landlock_traceme, landlock_traceme_fn);
KCR_DEFINE_CALL(kcr_call_lookup_name, lookup_name_fn);
KCR_DEFINE_CALL(kcr_call_stack_trace, stack_trace_fn);
KCR_DEFINE_CALL(kcr_call_get_btf, get_btf_fn);
KCR_DEFINE_CALL(kcr_call_btf_find, btf_find_fn);
KCR_DEFINE_CALL(kcr_call_btf_type, btf_type_fn);
KCR_DEFINE_CALL(kcr_call_btf_name, btf_name_fn);

#define KCR_LANDLOCK_VERSION	1	/* LANDLOCK_CREATE_RULESET_VERSION, since 5.13 */

static struct {
	unsigned long nanosleep;
	unsigned long futex_wait;
	unsigned long poll;
	bool clone;
	bool send_sig_info;
	bool file_receive;
	bool io_uring_enter;
	bool landlock;
	bool btf;
	bool stack_trace;
	const struct list_head *ptracer_relations;
} found __ro_after_init;

/* The address of a function, or 0. */
static unsigned long __init find(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	unsigned long address, offset;
	size_t length = strlen(name);
	char text[KSYM_SYMBOL_LEN];

	if (register_kprobe(&probe) < 0)
		return 0;
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);

	/* A probe sits behind an ENDBR: "name+0x4/0x80". */
	sprint_symbol(text, address);
	if (strncmp(text, name, length) || sscanf(text + length, "+0x%lx/", &offset) != 1)
		return 0;
	return address - offset;
}

/* A function that the module needs: logs if it is missing (0). */
static unsigned long __init need(const char *name)
{
	unsigned long address = find(name);

	if (!address)
		pr_err("the kernel's function %s cannot be found (CONFIG_KPROBES?)\n", name);
	return address;
}

static void __init find_clone(void)
{
	unsigned long clone = find("kernel_clone");
	unsigned long wait4 = find("kernel_wait4");

	if (!clone || !wait4)
		return;
	kcr_call_set(kcr_call_kernel_clone, kernel_clone_fn, clone);
	kcr_call_set(kcr_call_kernel_wait4, kernel_wait4_fn, wait4);
	found.clone = true;
}

static void __init find_send_sig_info(void)
{
	unsigned long address = find("do_send_sig_info");

	if (!address)
		return;
	kcr_call_set(kcr_call_do_send_sig_info, typeof(do_send_sig_info), address);
	found.send_sig_info = true;
}

static void __init find_stack_trace(void)
{
	unsigned long address = find("stack_trace_save_tsk");

	if (!address)
		return;
	kcr_call_set(kcr_call_stack_trace, stack_trace_fn, address);
	found.stack_trace = true;
}

/* The kernel's own reader of its BTF. */
static void __init find_btf(void)
{
	unsigned long get = find("bpf_get_btf_vmlinux");
	unsigned long name_kind = find("btf_find_by_name_kind");
	unsigned long type = find("btf_type_by_id");
	unsigned long name = find("btf_name_by_offset");

	if (!get || !name_kind || !type || !name)
		return;
	kcr_call_set(kcr_call_get_btf, get_btf_fn, get);
	kcr_call_set(kcr_call_btf_find, btf_find_fn, name_kind);
	kcr_call_set(kcr_call_btf_type, btf_type_fn, type);
	kcr_call_set(kcr_call_btf_name, btf_name_fn, name);
	found.btf = true;
}

static void __init find_io_uring(void)
{
	unsigned long enter = find(KCR_CALL_SYMBOL("io_uring_enter"));

	if (!enter)
		return;
	kcr_call_set(kcr_call_io_uring_enter, system_call_fn, enter);
	found.io_uring_enter = true;
}

/* Its function must not be called if it was switched off at boot (lsm=): ask for its version. */
static void __init find_landlock(void)
{
	const unsigned long argument[6] = { 0, 0, KCR_LANDLOCK_VERSION };
	unsigned long create = find(KCR_CALL_SYMBOL("landlock_create_ruleset"));
	unsigned long traceme = find("hook_ptrace_traceme");
	struct pt_regs regs = {};

	if (!create || !traceme)
		return;
	kcr_call_set(kcr_call_landlock_create, system_call_fn, create);
	kcr_call_set(kcr_call_landlock_traceme, landlock_traceme_fn, traceme);
	kcr_call_set_arguments(&regs, argument);
	found.landlock = kcr_call(kcr_call_landlock_create)(&regs) > 0;
}

/* No function: a probe does not find it, but the kernel's own search does. */
static void __init find_ptracer_relations(void)
{
	unsigned long lookup = IS_ENABLED(CONFIG_SECURITY_YAMA) ? find("kallsyms_lookup_name") : 0;

	if (!lookup)
		return;
	kcr_call_set(kcr_call_lookup_name, lookup_name_fn, lookup);
	found.ptracer_relations = (void *)kcr_call(kcr_call_lookup_name)("ptracer_relations");
}

static int __init find_security(void)
{
	unsigned long file_receive = 0;

	if (IS_ENABLED(CONFIG_SECURITY)) {
		file_receive = need("security_file_receive");
		if (!file_receive)
			return -ENOENT;
		kcr_call_set(kcr_call_security_file_receive, security_file_receive_fn,
			     file_receive);
	}
	found.file_receive = file_receive;
	return 0;
}

int __init kcr_lookup_init(void)
{
	unsigned long task_work_add = need("task_work_add");
	unsigned long may_access = need("ptrace_may_access");

	if (!task_work_add || !may_access)
		return -ENOENT;
	kcr_call_set(kcr_call_task_work_add, task_work_add_fn, task_work_add);
	kcr_call_set(kcr_call_ptrace_may_access, ptrace_may_access_fn, may_access);
	find_clone();
	find_send_sig_info();
	find_btf();
	find_io_uring();
	find_landlock();
	find_ptracer_relations();
	find_stack_trace();
	found.nanosleep = find("hrtimer_nanosleep_restart");
	found.futex_wait = find("futex_wait_restart");
	found.poll = find("do_restart_poll");
	return find_security();
}

bool kcr_ptrace_may_access(struct task_struct *task, unsigned int mode)
{
	return kcr_call(kcr_call_ptrace_may_access)(task, mode);
}

int kcr_security_file_receive(struct file *file)
{
	return found.file_receive ? kcr_call(kcr_call_security_file_receive)(file) : 0;
}

int kcr_task_work_add(struct task_struct *task, struct callback_head *work,
		      enum task_work_notify_mode notify)
{
	return kcr_call(kcr_call_task_work_add)(task, work, notify);
}

bool kcr_have_send_sig_info(void)
{
	return found.send_sig_info;
}

int kcr_send_sig_info(int signal, struct kernel_siginfo *info, struct task_struct *task,
		      enum pid_type type)
{
	return kcr_call(kcr_call_do_send_sig_info)(signal, info, task, type);
}

bool kcr_have_clone(void)
{
	return found.clone;
}

pid_t kcr_kernel_clone(struct kernel_clone_args *args)
{
	return found.clone ? kcr_call(kcr_call_kernel_clone)(args) : -EOPNOTSUPP;
}

long kcr_kernel_wait4(pid_t pid, int options)
{
	return found.clone ? kcr_call(kcr_call_kernel_wait4)(pid, NULL, options, NULL)
			   : -EOPNOTSUPP;
}

const struct btf *kcr_btf(void)
{
	const struct btf *btf = found.btf ? kcr_call(kcr_call_get_btf)() : NULL;

	return IS_ERR(btf) ? NULL : btf;
}

s32 kcr_btf_find(const struct btf *btf, const char *name, u8 kind)
{
	return kcr_call(kcr_call_btf_find)(btf, name, kind);
}

const struct btf_type *kcr_btf_type_by_id(const struct btf *btf, u32 id)
{
	return kcr_call(kcr_call_btf_type)(btf, id);
}

const char *kcr_btf_name(const struct btf *btf, u32 offset)
{
	return kcr_call(kcr_call_btf_name)(btf, offset);
}

long kcr_io_uring_enter(const struct pt_regs *arguments)
{
	return found.io_uring_enter ? kcr_call(kcr_call_io_uring_enter)(arguments) : -EOPNOTSUPP;
}

int kcr_landlock_traceme(struct task_struct *tracer)
{
	return found.landlock ? kcr_call(kcr_call_landlock_traceme)(tracer) : 0;
}

unsigned int kcr_stack_trace(struct task_struct *task, unsigned long *frames, unsigned int count)
{
	return found.stack_trace ? kcr_call(kcr_call_stack_trace)(task, frames, count, 0) : 0;
}

const struct list_head *kcr_ptracer_relations(void)
{
	return found.ptracer_relations;
}

unsigned long kcr_nanosleep_restart(void)
{
	return found.nanosleep;
}

unsigned long kcr_futex_wait_restart(void)
{
	return found.futex_wait;
}

unsigned long kcr_poll_restart(void)
{
	return found.poll;
}

/*
 * The kernel's rule: works are taken off the list by cmpxchg, and the task then
 * acquires pi_lock before it runs the first.  So a work that is seen in
 * the list under pi_lock stays valid, and one that is unlinked here never runs.
 */
bool kcr_task_work_cancel(struct task_struct *task, struct callback_head *work)
{
	struct callback_head **link, *entry;
	bool cancelled = false;
	unsigned long flags;

	raw_spin_lock_irqsave(&task->pi_lock, flags);
	link = &task->task_works;
	entry = READ_ONCE(*link);
	while (entry && !cancelled) {
		if (entry != work) {
			link = &entry->next;
			entry = READ_ONCE(*link);
		} else {
			/* On failure a work was put in front, or the list was taken. */
			cancelled = try_cmpxchg(link, &entry, work->next);
		}
	}
	raw_spin_unlock_irqrestore(&task->pi_lock, flags);
	return cancelled;
}
