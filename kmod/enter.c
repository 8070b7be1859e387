// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_ENTER: rebuilt threads become the saved ones.
 *
 * A thread that enters sleeps inside its ioctl, so that the code it came from
 * can be unmapped and memory can be filled behind its back.  The last thread
 * of a process to enter does what concerns the whole process: the executable
 * and the unmapping.  RESUME wakes all; each then queues a task work to
 * itself, which installs registers and signal mask on the way to user mode
 * (the value returned by the ioctl would overwrite them if done earlier).
 * Nobody gets back to the code that called: every way out of the sleep but
 * RESUME is death.  The owner's side is kmod/restart.c; locks: restart.h.
 */
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/user.h>
#include <asm/segment.h>

#include "compat/exe.h"
#include "compat/futex.h"
#include "compat/rseq.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "restart.h"

/* What a user program may carry in its flags register across a restart. */
#define USER_FLAGS (X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | \
		    X86_EFLAGS_SF | X86_EFLAGS_DF | X86_EFLAGS_OF | X86_EFLAGS_AC | \
		    X86_EFLAGS_ID)

/* A thread on its way back to user mode. */
struct entrant {
	struct callback_head work;
	struct kcr_job *job;
	struct kcr_enter request;
};

/* ---- the saved state, installed on the way to user mode -------------------- */

static void set_registers(const u64 *saved)
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

static ktime_t clock_now(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	default:
		return ktime_get();
	}
}

static void set_restart_block(const struct kcr_restart_block *saved)
{
	struct restart_block *block = &current->restart_block;
	u32 flags = saved->data[1] >> 32;

	switch (saved->kind) {
	case KCR_RESTART_NANOSLEEP:
		block->nanosleep.clockid = saved->data[0];
		block->nanosleep.type = saved->data[1];
		block->nanosleep.rmtp = u64_to_user_ptr(saved->data[2]);
		block->nanosleep.expires = ktime_add_ns(clock_now(saved->data[0]), saved->data[3]);
		block->fn = (long (*)(struct restart_block *))kcr_nanosleep_restart();
		break;
	case KCR_RESTART_FUTEX:
		block->futex.uaddr = u64_to_user_ptr(saved->data[0]);
		block->futex.val = saved->data[1];
		block->futex.flags = kcr_futex_flags_set(flags);
		block->futex.bitset = saved->data[2];
		block->futex.time = ktime_add_ns(clock_now(flags & KCR_FUTEX_REALTIME ?
							   CLOCK_REALTIME : CLOCK_MONOTONIC),
						 saved->data[3]);
		block->fn = (long (*)(struct restart_block *))kcr_futex_wait_restart();
		break;
	}
}

/*
 * A stopped thread must stop again before it runs user code and before any
 * other pending signal is dealt with.  So all stay blocked until it is
 * continued; then the kernel puts saved_sigmask back, as after sigsuspend().
 */
static void set_signal_mask(u64 mask, bool stopped)
{
	sigset_t set = { .sig = { mask } };

	sigdelsetmask(&set, sigmask(SIGKILL) | sigmask(SIGSTOP));
	if (!stopped) {
		sigprocmask(SIG_SETMASK, &set, NULL);
		return;
	}
	current->saved_sigmask = set;
	siginitsetinv(&set, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &set, NULL);
	send_sig(SIGSTOP, current, 1);
	set_restore_sigmask();
}

static void install(struct callback_head *work)
{
	struct entrant *entrant = container_of(work, struct entrant, work);
	const struct kcr_enter *request = &entrant->request;
	struct kcr_job *job = entrant->job;

	if (!(current->flags & PF_EXITING)) {
		if (request->job_fd >= 0)
			close_fd(request->job_fd);
		set_restart_block(&request->restart);
		set_registers(request->regs);
		set_signal_mask(request->sigmask, request->flags & KCR_ENTER_STOPPED);
		kcr_rseq_renew();
	}
	kfree(entrant);
	kcr_job_put(job);
}

bool kcr_enter_follows(const struct callback_head *work)
{
	while ((work = work->next))
		if (work->func == install)
			return true;
	return false;
}

/* ---- validation -------------------------------------------------------------- */

static int check_restart_block(const struct kcr_restart_block *block)
{
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

static int check_request(const struct kcr_enter *request)
{
	const struct user_regs_struct *regs = (const struct user_regs_struct *)request->regs;

	BUILD_BUG_ON(sizeof(*regs) != sizeof(request->regs));

	if (request->flags & KCR_ENTER_LEADERLESS && thread_group_leader(current))
		return -EINVAL;
	if (!request->nr_threads || !valid_signal(request->stop_signal) ||
	    (request->stop_signal && !(request->flags & KCR_ENTER_STOPPED)))
		return -EINVAL;
	if (request->dumpable < -1 || request->dumpable > 1 || request->pad)
		return -EINVAL;
	/* Code and stack segments are the caller's own: those of 64-bit programs. */
	if (current_pt_regs()->cs != __USER_CS)
		return -EINVAL;
	if (regs->ip >= TASK_SIZE_MAX || regs->sp >= TASK_SIZE_MAX)
		return -EINVAL;
	if (!PAGE_ALIGNED(request->unmap_start) || !PAGE_ALIGNED(request->unmap_len))
		return -EINVAL;
	if (request->unmap_len > TASK_SIZE_MAX ||
	    request->unmap_start > TASK_SIZE_MAX - request->unmap_len)
		return -EINVAL;
	return check_restart_block(&request->restart);
}

/*
 * The file that is to be /proc/PID/exe: one that the caller may execute and has
 * open to read.  A debugger can execute such a program, whatever its mode, and
 * then change all that is in it: this names nothing that he could not have named.
 */
static struct file *get_exe(int fd)
{
	struct file *file = fget(fd);
	int ret = 0;

	if (!file)
		return ERR_PTR(-EBADF);
	if (!S_ISREG(file_inode(file)->i_mode) || !(file->f_mode & FMODE_READ) ||
	    (file->f_path.mnt->mnt_flags & MNT_NOEXEC) ||
	    (file->f_path.mnt->mnt_sb->s_iflags & SB_I_NOEXEC))
		ret = -EACCES;
	if (!ret)
		ret = kcr_file_may_exec(file);
	if (ret) {
		fput(file);
		return ERR_PTR(ret);
	}
	return file;
}

/* ---- entering ---------------------------------------------------------------- */

static struct kcr_half *find_half(struct kcr_restart *restart, struct pid *pid)
{
	struct kcr_half *half;

	list_for_each_entry(half, &restart->processes, node)
		if (half->pid == pid)
			return half;
	return NULL;
}

static struct kcr_half *find_own(struct kcr_job *job, struct kcr_restart *restart)
{
	struct kcr_half *half;

	spin_lock(&job->list_lock);
	half = find_half(restart, task_tgid(current));
	spin_unlock(&job->list_lock);
	return half;
}

/* The caller's own process in the job; one not made by CLONE joins here. */
static struct kcr_half *join(struct kcr_job *job, struct kcr_restart *restart)
{
	struct kcr_half *half = find_own(job, restart), *fresh;

	if (half)
		return half;
	fresh = kcr_half_new(job);
	if (IS_ERR(fresh))
		return fresh;
	fresh->pid = get_pid(task_tgid(current));
	fresh->exec_id = READ_ONCE(current->self_exec_id);
	spin_lock(&job->list_lock);
	half = find_half(restart, fresh->pid);
	if (!half) {
		half = fresh;
		fresh = NULL;
		list_add_tail(&half->node, &restart->processes);
	}
	spin_unlock(&job->list_lock);
	kcr_half_drop(job, fresh);
	return half;
}

/* Does the calling thread say what concerns its whole process? */
static bool speaks(const struct kcr_enter *request)
{
	return thread_group_leader(current) || request->flags & KCR_ENTER_LEADERLESS;
}

/*
 * Counts the caller in. 1: it is the last of its process.  *exe is taken over
 * (an older one of a failed call comes back).
 */
static int count_in(struct kcr_job *job, struct kcr_half *half, const struct kcr_enter *request,
		    struct file **exe)
{
	int ret;

	spin_lock(&job->list_lock);
	if (job->restart->aborted) {
		ret = -ECANCELED;
	} else if (half->nr_threads && half->nr_threads != request->nr_threads) {
		ret = -EINVAL;
	} else if (half->entered == request->nr_threads) {
		ret = -EINVAL;
	} else {
		half->nr_threads = request->nr_threads;
		half->entered++;
		if (!half->mm) {
			half->mm = current->mm;
			mmgrab(half->mm);
		}
		if (*exe)
			swap(half->exe, *exe);
		if (speaks(request)) {
			half->leaderless = request->flags & KCR_ENTER_LEADERLESS;
			half->stopped = request->flags & KCR_ENTER_STOPPED;
			half->stop_signal = request->stop_signal;
			half->dumpable = request->dumpable;
		}
		if (request->unmap_len && speaks(request)) {
			half->unmap_start = request->unmap_start;
			half->unmap_len = request->unmap_len;
		}
		ret = half->entered == half->nr_threads;
	}
	spin_unlock(&job->list_lock);
	return ret;
}

/* The old executable may be written again, the new one may not. */
static int swap_exe(struct file *exe)
{
	struct mm_struct *mm = current->mm;
	struct file *old;
	int ret;

	ret = kcr_exe_deny_write(exe);
	if (ret)
		return ret;
	get_file(exe);
	/* Excludes fork, which copies the pointer and denies writing once more. */
	mmap_write_lock(mm);
	old = rcu_dereference_protected(mm->exe_file, lockdep_is_held(&mm->mmap_lock));
	rcu_assign_pointer(mm->exe_file, exe);
	mmap_write_unlock(mm);
	if (old) {
		kcr_exe_allow_write(old);
		fput(old);
	}
	return 0;
}

static bool mm_complete(struct kcr_job *job, const struct mm_struct *mm)
{
	struct kcr_half *half;

	lockdep_assert_held(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node)
		if (half->mm == mm && !half->complete)
			return false;
	return true;
}

/*
 * Takes the old code of all that share this mm away: all their threads are
 * asleep.  One thread does so, that of the process that completed last.
 */
static int unmap_old_code(struct kcr_job *job, struct mm_struct *mm)
{
	struct kcr_half *half;
	int ret = 0;

	/* Entries are only ever appended, and stay until the job is freed. */
	spin_lock(&job->list_lock);
	list_for_each_entry(half, &job->restart->processes, node) {
		if (half->mm != mm || !half->unmap_len)
			continue;
		spin_unlock(&job->list_lock);
		ret = vm_munmap(half->unmap_start, half->unmap_len);
		spin_lock(&job->list_lock);
		if (ret)
			break;
	}
	list_for_each_entry(half, &job->restart->processes, node) {
		if (ret || half->mm != mm)
			continue;
		half->ready = true;
		job->restart->nr_threads += half->nr_threads;
	}
	spin_unlock(&job->list_lock);
	return ret;
}

/* It is on its way: nothing tells of a leader's end while others live, so look. */
static int await_leader_end(void)
{
	while (!READ_ONCE(current->group_leader->exit_state)) {
		schedule_timeout_killable(1);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* By the last thread of a process: all the others sleep in the kernel or have ended. */
static int make_ready(struct kcr_job *job, struct kcr_half *half)
{
	bool all;
	int ret;

	ret = half->leaderless ? await_leader_end() : 0;
	if (ret)
		return ret;
	if (get_nr_threads(current) != half->nr_threads + half->leaderless)
		return -EINVAL;
	ret = half->exe ? swap_exe(half->exe) : 0;
	if (ret)
		return ret;
	spin_lock(&job->list_lock);
	half->complete = true;
	all = mm_complete(job, half->mm);
	spin_unlock(&job->list_lock);
	if (all)
		ret = unmap_old_code(job, half->mm);
	wake_up_all(&job->arrived);
	return ret;
}

static void count_out(struct kcr_job *job, struct kcr_half *half)
{
	spin_lock(&job->list_lock);
	half->entered--;
	half->complete = false;
	spin_unlock(&job->list_lock);
}

static bool may_go(const struct kcr_restart *restart, bool stopped, bool held)
{
	/* `holding` is set before `resumed` and cleared after it. */
	return (smp_load_acquire(&restart->resumed) &&
		!(held && READ_ONCE(restart->holding))) || (stopped && READ_ONCE(restart->stopping));
}

/* Sleeps until RESUME; -EINTR: the caller is dying. */
static int sleep_until_resumed(struct kcr_job *job, u32 flags)
{
	int ret;

	ret = wait_event_killable(job->released, may_go(job->restart, flags & KCR_ENTER_STOPPED,
							flags & KCR_ENTER_HELD) ||
						 READ_ONCE(job->restart->aborted));
	if (ret)
		return -EINTR;
	if (!READ_ONCE(job->restart->aborted))
		return 0;
	send_sig(SIGKILL, current, 1);
	return -EINTR;
}

static long enter(struct entrant *entrant)
{
	const struct kcr_enter *request = &entrant->request;
	struct kcr_job *job = entrant->job;
	struct kcr_restart *restart;
	struct kcr_half *half;
	struct file *exe = NULL;
	int ret;

	restart = kcr_restart_get(job);
	if (IS_ERR(restart))
		return PTR_ERR(restart);
	half = join(job, restart);
	if (IS_ERR(half))
		return PTR_ERR(half);
	if (request->exe_fd >= 0 && speaks(request)) {
		exe = get_exe(request->exe_fd);
		if (IS_ERR(exe))
			return PTR_ERR(exe);
	}
	ret = count_in(job, half, request, &exe);
	if (exe)
		fput(exe);
	if (ret < 0)
		return ret;
	if (request->exe_fd >= 0 && speaks(request))
		close_fd(request->exe_fd);
	if (ret) {
		ret = make_ready(job, half);
		if (ret) {
			count_out(job, half);
			return ret;
		}
	}
	ret = sleep_until_resumed(job, request->flags);
	if (ret)
		return ret;
	return kcr_task_work_add(current, &entrant->work, TWA_RESUME);
}

/* In a rebuilt thread; not under job->lock. Returns to the caller only on an error. */
long kcr_ioc_enter(struct kcr_job *job, void *request)
{
	struct entrant *entrant;
	long ret = check_request(request);

	if (ret)
		return ret;
	entrant = kzalloc(sizeof(*entrant), GFP_KERNEL_ACCOUNT);
	if (!entrant)
		return -ENOMEM;
	entrant->request = *(const struct kcr_enter *)request;
	init_task_work(&entrant->work, install);
	entrant->job = kcr_job_get(job);
	ret = enter(entrant);
	if (ret) {
		kfree(entrant);
		kcr_job_put(job);
	}
	return ret;
}
