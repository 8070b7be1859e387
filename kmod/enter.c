// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_ENTER: rebuilt threads become the saved ones.
 *
 * A thread that enters sleeps inside its ioctl, so that the code it came from
 * can be unmapped and memory can be filled behind its back.  The last thread
 * of a process to enter does what concerns the whole process: the executable
 * and the unmapping.  RESUME wakes all; each then queues a task work to
 * itself, which installs registers and signal mask on the way to user mode
 * (the value returned by the ioctl would overwrite them if done earlier).  A
 * system call that had been interrupted is so again, and the kernel decides what
 * becomes of it: EINTR, if a signal is pending whose handler runs first.
 * No thread returns to its caller: the only ways out of the sleep are RESUME
 * and SIGKILL.  The owner's side is kmod/restart.c; locks: restart.h.
 */
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>

#include "arch/x86/registers.h"
#include "compat/exe.h"
#include "compat/rseq.h"
#include "compat/settings.h"
#include "compat/wait.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "restart.h"
#include "syscall.h"

#define LEADER_POLL_MS	4

/* A thread on its way back to user mode. */
struct entrant {
	struct callback_head work;
	struct kcr_job *job;
	struct kcr_enter request;
};

/* ---- the saved state, installed on the way to user mode -------------------- */

/*
 * A stopped thread must stop again before it runs user code and before any
 * other pending signal is handled.  So all signals stay blocked until it is
 * continued; then the kernel restores saved_sigmask, as after sigsuspend().
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

static void finish(struct callback_head *work)
{
	struct entrant *entrant = container_of(work, struct entrant, work);
	struct kcr_job *job = entrant->job;

	kfree(entrant);
	kcr_job_put(job);
}

/* True: the thread must go through the handling of signals. */
static bool install_state(const struct kcr_enter *request)
{
	bool interrupted;

	if (request->job_fd >= 0)
		close_fd(request->job_fd);
	kcr_syscall_set_block(&request->restart);
	kcr_registers_set(request->regs);
	interrupted = kcr_syscall_set_interrupted(&request->restart);
	set_signal_mask(request->sigmask, request->flags & KCR_ENTER_STOPPED);
	kcr_rseq_renew();
	kcr_set_dispatch(&request->dispatch);
	return interrupted;
}

/*
 * A work that is announced as a signal leads there, as TIF_SIGPENDING would; but no other work
 * that looks for signals meanwhile, and finds none, undoes it.
 */
static void install(struct callback_head *work)
{
	struct entrant *entrant = container_of(work, struct entrant, work);
	bool interrupted = false;

	if (!(current->flags & PF_EXITING))
		interrupted = install_state(&entrant->request);
	init_task_work(work, finish);
	if (!interrupted || kcr_task_work_add(current, work, TWA_SIGNAL))
		finish(work);
}

bool kcr_enter_follows(const struct callback_head *work)
{
	while ((work = work->next))
		if (work->func == install)
			return true;
	return false;
}

/* ---- validation -------------------------------------------------------------- */

static int check_request(const struct kcr_enter *request)
{
	if (request->flags & KCR_ENTER_LEADERLESS && thread_group_leader(current))
		return -EINVAL;
	if (!request->nr_threads || !valid_signal(request->stop_signal) ||
	    (request->stop_signal && !(request->flags & KCR_ENTER_STOPPED)))
		return -EINVAL;
	if (request->dumpable < -1 || request->dumpable > 1 || request->pad)
		return -EINVAL;
	if (!PAGE_ALIGNED(request->unmap_start) || !PAGE_ALIGNED(request->unmap_len))
		return -EINVAL;
	if (request->unmap_len > TASK_SIZE_MAX ||
	    request->unmap_start > TASK_SIZE_MAX - request->unmap_len)
		return -EINVAL;
	return kcr_registers_check(request->regs) ?:
	       kcr_syscall_check_block(&request->restart) ?:
	       kcr_dispatch_check(&request->dispatch);
}

/*
 * The file that is to be /proc/PID/exe: one that the caller may execute and has
 * open for reading.  A debugger can execute such a program, whatever its mode, and
 * then replace its memory: so this gives the caller no new possibility.
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

/* The caller's own process in the job; one not created by CLONE joins here. */
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

/* Does the calling thread's request apply to its whole process? */
static bool speaks(const struct kcr_enter *request)
{
	return thread_group_leader(current) || request->flags & KCR_ENTER_LEADERLESS;
}

/*
 * Counts the caller as entered.  1: it is the last of its process.  *exe is taken
 * over (and replaced by an older one of a failed call).
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

/* Allows writing to the old executable again and denies it to the new one. */
static int swap_exe(struct file *exe)
{
	struct mm_struct *mm = current->mm;
	struct file *old;
	bool denies;
	int ret = 0;

	/* What we are made from is in use: fork has copied the pointer, and denied writing again. */
	rcu_read_lock();
	old = rcu_dereference(mm->exe_file);
	denies = !old || kcr_exe_is_denied(old);
	rcu_read_unlock();
	if (denies)
		ret = kcr_exe_deny_write(exe);
	if (ret)
		return ret;
	get_file(exe);
	/* Excludes fork, which copies the pointer and denies writing again. */
	mmap_write_lock(mm);
	/* Who shares the memory may exchange it, too (PR_SET_MM_MAP), before 6.6 without the lock. */
	old = xchg((struct file __force **)&mm->exe_file, exe);
	mmap_write_unlock(mm);
	if (old && denies)
		kcr_exe_allow_write(old);
	if (old)
		fput(old);
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
 * Unmaps the old code of all processes that share this mm: all their threads are
 * asleep.  One thread does so, of the process that completed last.
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

/* The leader is exiting.  Nothing wakes us at its end while others live, so poll. */
static int await_leader_end(void)
{
	while (!READ_ONCE(current->group_leader->exit_state)) {
		kcr_sleep_parked(msecs_to_jiffies(LEADER_POLL_MS));
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

	ret = kcr_wait_parked(job->released, may_go(job->restart, flags & KCR_ENTER_STOPPED,
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

/* In a rebuilt thread; not under job->lock.  Returns to user mode only on an error. */
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
