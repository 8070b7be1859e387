// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupted system calls: what a parked thread does when it runs on, and
 * what its image must hold so that the call restarts or goes on with the
 * time that was left.  A call that is interrupted by a task work has its restart
 * code in ax; the kernel's own fix-up comes after the work (kmod/parked.c says when not).
 */
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/termios.h>
#include <linux/timekeeping.h>
#include <asm/syscall.h>

#include "arch/x86/call.h"
#include "compat/futex.h"
#include "compat/syscall.h"
#include "compat/task.h"
#include "lookup.h"
#include "syscall.h"

/*
 * Likewise calls that ask a file system of FUSE about names and files, where the server heeds
 * interruptions.  Left out is what may have been done already and would fail then, as mkdir(2) and
 * a file that must be new.
 */
static bool asks_file_system(long nr, unsigned long second, unsigned long third)
{
	switch (nr) {
	case __NR_open:
		return !(second & O_EXCL);
	case __NR_openat:
		return !(third & O_EXCL);
	case __NR_stat:
	case __NR_lstat:
	case __NR_fstat:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_access:
	case __NR_faccessat:
	case __NR_faccessat2:
	case __NR_readlink:
	case __NR_readlinkat:
	case __NR_getdents:
	case __NR_getdents64:
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_statfs:
	case __NR_fstatfs:
	case __NR_truncate:
	case __NR_ftruncate:
	case __NR_getxattr:
	case __NR_lgetxattr:
	case __NR_fgetxattr:
	case __NR_listxattr:
	case __NR_llistxattr:
	case __NR_flistxattr:
		return true;
	}
	return false;
}

/*
 * Calls that return a plain EINTR for a pending signal even if no handler
 * runs, at least with a time-out of their socket or on some file systems
 * (fallocate: tmpfs; pread64: FUSE, /dev/zero).  When they do, they have done
 * nothing that could not be repeated safely.
 */
static bool returns_plain_eintr(long nr, unsigned long second, unsigned long third)
{
	switch (nr) {
	case __NR_ioctl:
		return second == TCSBRK || second == TCSBRKP;	/* tcdrain(3) */
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_select:
	case __NR_pselect6:
	case __NR_ppoll:
	case __NR_semop:
	case __NR_semtimedop:
	case __NR_rt_sigtimedwait:
	case __NR_io_getevents:
	case __NR_io_pgetevents:
	case __NR_io_uring_enter:
	case __NR_read:
	case __NR_readv:
	case __NR_pread64:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_write:
	case __NR_writev:
	case __NR_pwrite64:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_sendfile:
	case __NR_splice:
	case __NR_tee:
	case __NR_vmsplice:
	case __NR_copy_file_range:
	case __NR_fallocate:
	case __NR_connect:
	case __NR_accept:
	case __NR_accept4:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
		return true;
	}
	return asks_file_system(nr, second, third);
}

void kcr_hide_eintr(struct pt_regs *regs)
{
	unsigned long arguments[6];
	int nr = syscall_get_nr(current, regs);

	if (nr < 0 || syscall_get_return_value(current, regs) != -EINTR)
		return;
	/* If a handler is to run it still becomes EINTR. */
	syscall_get_arguments(current, regs, arguments);
	if (returns_plain_eintr(nr, arguments[1], arguments[2]))
		syscall_set_return_value(current, regs, -ERESTARTNOHAND, 0);
}

bool kcr_syscall_may_rest(struct pt_regs *regs)
{
	unsigned long arguments[6];

	if (syscall_get_nr(current, regs) != __NR_io_uring_enter)
		return false;
	syscall_get_arguments(current, regs, arguments);
	return !arguments[1];
}

static ktime_t clock_now(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	}
	return ktime_get();
}

static u64 time_left(ktime_t end, clockid_t clock)
{
	s64 left = ktime_to_ns(ktime_sub(end, clock_now(clock)));

	return max_t(s64, left, 0);
}

static bool save_nanosleep(const struct restart_block *block, struct kcr_restart_block *saved)
{
	clockid_t clock = block->nanosleep.clockid;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME &&
	    clock != CLOCK_TAI)
		return false;
	saved->kind = KCR_RESTART_NANOSLEEP;
	saved->data[0] = clock;
	saved->data[1] = block->nanosleep.type;
	saved->data[2] = (unsigned long)block->nanosleep.rmtp;
	saved->data[3] = time_left(block->nanosleep.expires, clock);
	return true;
}

static void save_futex(const struct restart_block *block, struct kcr_restart_block *saved)
{
	u32 flags = kcr_futex_flags_get(block->futex.flags);

	saved->kind = KCR_RESTART_FUTEX;
	saved->data[0] = (unsigned long)block->futex.uaddr;
	saved->data[1] = block->futex.val | (u64)flags << 32;
	saved->data[2] = block->futex.bitset;
	saved->data[3] = time_left(block->futex.time, flags & KCR_FUTEX_REALTIME ?
				   CLOCK_REALTIME : CLOCK_MONOTONIC);
}

/* poll(2) has its time-out in a register: it is issued again with the time left. */
static void restart_poll(const struct restart_block *block, struct user_regs_struct *regs)
{
	u64 left;

	kcr_call_again(regs, __NR_poll);
	if (!kcr_poll_has_timeout(block))
		return;
	left = time_left(kcr_poll_end(block), CLOCK_MONOTONIC);
	kcr_call_set_third_argument(regs, div_u64(left + NSEC_PER_MSEC - 1, NSEC_PER_MSEC));
}

/* Saves what restart_syscall(2) needs to go on; false: cannot be saved. */
static bool save_block(const struct task_struct *task, struct kcr_restart_block *saved)
{
	const struct restart_block *block = &task->restart_block;
	unsigned long fn = (unsigned long)block->fn;

	if (fn && fn == kcr_nanosleep_restart())
		return save_nanosleep(block, saved);
	if (!fn || fn != kcr_futex_wait_restart())
		return false;
	save_futex(block, saved);
	return true;
}

/* As kcr_call_again(); a signal's handler interrupts it as it would have done at the checkpoint. */
static void call_again(struct user_regs_struct *regs, struct kcr_restart_block *saved,
		       u32 interrupt)
{
	kcr_call_again(regs, kcr_call_nr(regs));
	saved->interrupt = interrupt;
}

/* The call goes on by restart_syscall(2), which calls what the restart_block names. */
static void restart_by_block(const struct task_struct *task, struct user_regs_struct *regs,
			     struct kcr_restart_block *saved)
{
	const struct restart_block *block = &task->restart_block;
	unsigned long fn = (unsigned long)block->fn;

	saved->interrupt = KCR_INTERRUPT_ALWAYS;
	if (save_block(task, saved)) {
		kcr_call_again(regs, __NR_restart_syscall);
	} else if (fn && fn == kcr_poll_restart()) {
		restart_poll(block, regs);
	} else if (kcr_call_nr(regs) != __NR_restart_syscall) {
		/* Any other call: from its beginning, unless this was a restart already. */
		kcr_call_again(regs, kcr_call_nr(regs));
	} else {
		kcr_call_return(regs, -EINTR);
		saved->interrupt = KCR_INTERRUPT_NEVER;
	}
}

/*
 * Does its call wait with signals blocked that are not so otherwise (sigsuspend(2), ppoll(2))?
 * These must not interrupt it; at a restart only the mask for afterwards is known.
 */
static bool blocks_more(const struct task_struct *task)
{
	return test_tsk_restore_sigmask((struct task_struct *)task) &&
	       task->blocked.sig[0] & ~task->saved_sigmask.sig[0];
}

static bool is_restarted(long result)
{
	switch (result) {
	case -ERESTARTNOHAND:
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

/* With the decision signals are unblocked that the call alone blocks: they must not end it. */
void kcr_syscall_note(struct task_struct *task, struct kcr_interruption *note)
{
	struct pt_regs *regs = task_pt_regs(task);
	long result = syscall_get_return_value(task, regs);

	note->ip = instruction_pointer(regs);
	note->result = syscall_get_nr(task, regs) >= 0 && is_restarted(result) &&
		       !blocks_more(task) ? result : 0;
}

/* After a signal's handler was set up, or a debugger has written to it, ip is another. */
void kcr_syscall_interrupt_again(const struct kcr_interruption *note)
{
	struct pt_regs *regs = current_pt_regs();

	if (note->result && kcr_syscall_is_repeated(regs) &&
	    instruction_pointer(regs) == note->ip - KCR_CALL_BYTES)
		kcr_call_undo_again(regs, note->result);
}

bool kcr_syscall_is_repeated(struct pt_regs *regs)
{
	int nr = syscall_get_nr(current, regs);
	long result = syscall_get_return_value(current, regs);

	return nr >= 0 && (result == nr || result == __NR_restart_syscall);
}

/* The first of these signals that has a handler, or NULL. */
static const struct sigaction *find_handler(const struct sighand_struct *sighand,
					    unsigned long signals)
{
	const struct sigaction *action;
	unsigned int bit;

	for_each_set_bit(bit, &signals, BITS_PER_LONG) {
		action = &sighand->action[bit].sa;
		if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)
			return action;
	}
	return NULL;
}

/* What the call alone blocks, or lets through, does not count: it is made again for that. */
static bool is_interrupted(long result)
{
	/* The calling thread's own, which stays. */
	struct sighand_struct *sighand = rcu_access_pointer(current->sighand);
	unsigned long blocked = current->blocked.sig[0];
	const struct sigaction *action;
	bool interrupted;

	if (test_tsk_restore_sigmask(current))
		blocked |= current->saved_sigmask.sig[0];
	spin_lock_irq(&sighand->siglock);
	action = find_handler(sighand, current->pending.signal.sig[0] & ~blocked) ?:
		 find_handler(sighand, current->signal->shared_pending.signal.sig[0] & ~blocked);
	interrupted = action && !(result == -ERESTARTSYS && action->sa_flags & SA_RESTART);
	spin_unlock_irq(&sighand->siglock);
	return interrupted;
}

void kcr_syscall_see_signals(void)
{
	struct pt_regs *regs = current_pt_regs();
	long result = syscall_get_return_value(current, regs);

	/* A debugger may take the signal away, and one to the process is taken by one of its threads. */
	if (!KCR_SEES_SIGNALS_BEFORE_WORKS || current->ptrace ||
	    !test_thread_flag(TIF_SIGPENDING) || syscall_get_nr(current, regs) < 0)
		return;
	if (is_restarted(result) && result != -ERESTARTNOINTR && is_interrupted(result))
		syscall_set_return_value(current, regs, -EINTR, 0);
}

void kcr_syscall_restart(const struct task_struct *task, struct user_regs_struct *regs,
			 struct kcr_restart_block *saved)
{
	/*
	 * About to go on already: after the kernel's fix-up, or restarted and stopped.
	 * (If the program happens to have this value in ax, the block is never used.)
	 */
	if (kcr_call_result(regs) == __NR_restart_syscall)
		save_block(task, saved);
	if (kcr_call_nr(regs) < 0)
		return;
	switch (kcr_call_result(regs)) {
	case -EINTR:
		if (returns_plain_eintr(kcr_call_nr(regs), kcr_call_second_argument(regs),
					kcr_call_third_argument(regs)))
			call_again(regs, saved, KCR_INTERRUPT_ALWAYS);
		break;
	case -ERESTARTNOHAND:
		call_again(regs, saved, KCR_INTERRUPT_ALWAYS);
		break;
	case -ERESTARTSYS:
		call_again(regs, saved, KCR_INTERRUPT_SA);
		break;
	case -ERESTARTNOINTR:
		call_again(regs, saved, KCR_INTERRUPT_NEVER);
		break;
	case -ERESTART_RESTARTBLOCK:
		restart_by_block(task, regs, saved);
		break;
	case -ENOSYS:			/* it rests inside: kcr_syscall_may_rest() */
		if (kcr_call_nr(regs) == __NR_io_uring_enter)
			call_again(regs, saved, KCR_INTERRUPT_ALWAYS);
		break;
	}
	if (blocks_more(task))
		saved->interrupt = KCR_INTERRUPT_NEVER;
	kcr_call_forget(regs);
}

/* ---- at the restart ---------------------------------------------------------------- */

int kcr_syscall_check_block(const struct kcr_restart_block *block)
{
	if (block->interrupt > KCR_INTERRUPT_ALWAYS)
		return -EINVAL;
	switch (block->kind) {
	case KCR_RESTART_NONE:
		return 0;
	case KCR_RESTART_NANOSLEEP:
		if (block->data[0] != CLOCK_REALTIME && block->data[0] != CLOCK_MONOTONIC &&
		    block->data[0] != CLOCK_BOOTTIME && block->data[0] != CLOCK_TAI)
			return -EINVAL;
		if (block->data[1] != TT_NONE && block->data[1] != TT_NATIVE)
			return -EINVAL;
		return kcr_nanosleep_restart() ? 0 : -EOPNOTSUPP;
	case KCR_RESTART_FUTEX:
		if (block->data[1] >> 32 & ~(u64)(KCR_FUTEX_SHARED | KCR_FUTEX_REALTIME |
						  KCR_FUTEX_TIMEOUT))
			return -EINVAL;
		return kcr_futex_wait_restart() ? 0 : -EOPNOTSUPP;
	}
	return -EINVAL;
}

typedef long (*restart_function)(struct restart_block *);

void kcr_syscall_set_block(const struct kcr_restart_block *saved)
{
	struct restart_block *block = &current->restart_block;
	u32 flags = saved->data[1] >> 32;

	switch (saved->kind) {
	case KCR_RESTART_NANOSLEEP:
		block->nanosleep.clockid = saved->data[0];
		block->nanosleep.type = saved->data[1];
		block->nanosleep.rmtp = u64_to_user_ptr(saved->data[2]);
		block->nanosleep.expires = ktime_add_ns(clock_now(saved->data[0]), saved->data[3]);
		set_restart_fn(block, (restart_function)kcr_nanosleep_restart());
		break;
	case KCR_RESTART_FUTEX:
		block->futex.uaddr = u64_to_user_ptr(saved->data[0]);
		block->futex.val = saved->data[1];
		block->futex.flags = kcr_futex_flags_set(flags);
		block->futex.bitset = saved->data[2];
		block->futex.time = ktime_add_ns(clock_now(flags & KCR_FUTEX_REALTIME ?
							   CLOCK_REALTIME : CLOCK_MONOTONIC),
						 saved->data[3]);
		set_restart_fn(block, (restart_function)kcr_futex_wait_restart());
		break;
	}
}

bool kcr_syscall_set_interrupted(const struct kcr_restart_block *saved)
{
	struct pt_regs *regs = current_pt_regs();

	switch (saved->interrupt) {
	case KCR_INTERRUPT_SA:
		kcr_call_interrupted(regs, -ERESTARTSYS);
		return true;
	case KCR_INTERRUPT_ALWAYS:
		kcr_call_interrupted(regs, saved->kind == KCR_RESTART_NONE ?
					   -ERESTARTNOHAND : -ERESTART_RESTARTBLOCK);
		return true;
	}
	return false;
}
