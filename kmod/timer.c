// SPDX-License-Identifier: GPL-2.0
/*
 * TIMERS: the interval timers and the POSIX timers of a process, as time
 * left.  Timers run on while the process rests; one that fires meanwhile has
 * its signal queued, and the time left is to its next expiry.
 *
 * The lists are stable while a thread of the process rests and job->list_lock
 * is held (timers are made and deleted by their process only).  it_lock can't
 * be taken: it nests outside siglock.  Only expiry changes a timer meanwhile,
 * and a reader of a single moment can't tell before from after.
 */
#include <linux/sched/signal.h>	/* before posix-timers.h, which 5.10 needs */

#include <linux/alarmtimer.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/posix-timers.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/posix_timer.h"
#include "park.h"

#define MAX_TIMERS	(1 << 16)	/* returned at once */

struct collection {
	struct kcr_timer *timers;
	u32 capacity;
	u32 nr;
};

static void collect(struct collection *to, const struct kcr_timer *timer)
{
	if (to->nr < to->capacity)
		to->timers[to->nr] = *timer;
	to->nr++;
}

/* Time left of a timer that is armed: past expiries of a periodic one are skipped. */
static u64 time_left(s64 left, u64 interval)
{
	u64 late;

	if (left > 0)
		return left;
	if (!interval)
		return 1;
	div64_u64_rem(-left, interval, &late);
	return interval - late;
}

/* CPU time used so far, by CPUCLOCK_*. */
struct cpu_use {
	u64 used[CPUCLOCK_MAX];
};

static void add_cpu_use(struct cpu_use *use, u64 user, u64 system, u64 runtime)
{
	use->used[CPUCLOCK_PROF] += user + system;
	use->used[CPUCLOCK_VIRT] += user;
	use->used[CPUCLOCK_SCHED] += runtime;
}

static struct cpu_use sample_thread(struct task_struct *task)
{
	struct cpu_use use = {};

	add_cpu_use(&use, task->utime, task->stime, task->se.sum_exec_runtime);
	return use;
}

static struct cpu_use sample_process(struct task_struct *any)
{
	struct signal_struct *signal = any->signal;
	struct cpu_use use = {};
	struct task_struct *task;

	add_cpu_use(&use, signal->utime, signal->stime, signal->sum_sched_runtime);
	for_each_thread(any, task)
		add_cpu_use(&use, task->utime, task->stime, task->se.sum_exec_runtime);
	return use;
}

static void collect_itimers(struct collection *to, struct task_struct *task)
{
	static const int ids[] = { [CPUCLOCK_PROF] = ITIMER_PROF, [CPUCLOCK_VIRT] = ITIMER_VIRTUAL };
	struct signal_struct *signal = task->signal;
	struct kcr_timer timer = { .kind = KCR_TIMER_ITIMER, .id = ITIMER_REAL };
	struct cpu_use use = sample_process(task);
	unsigned int clock;

	timer.interval_ns = ktime_to_ns(signal->it_real_incr);
	if (timer.interval_ns || hrtimer_active(&signal->real_timer)) {
		timer.remaining_ns = time_left(ktime_to_ns(hrtimer_get_remaining(&signal->real_timer)),
					       timer.interval_ns);
		collect(to, &timer);
	}
	for (clock = 0; clock < ARRAY_SIZE(ids); clock++) {
		if (!signal->it[clock].expires)
			continue;
		timer.id = ids[clock];
		timer.interval_ns = signal->it[clock].incr;
		timer.remaining_ns = time_left(signal->it[clock].expires - use.used[clock],
					       timer.interval_ns);
		collect(to, &timer);
	}
}

/* A timer on a CPU clock; false if the clock's thread is gone. */
static bool read_cpu_timer(struct k_itimer *from, struct task_struct *task,
			   struct kcr_timer *timer)
{
	bool per_thread = CPUCLOCK_PERTHREAD(from->it_clock);
	unsigned int which = CPUCLOCK_WHICH(from->it_clock);
	u64 expires = kcr_cpu_timer_expires(&from->it.cpu);
	struct pid *pid = from->it.cpu.pid;
	struct task_struct *clock_task;
	struct cpu_use use;

	clock_task = pid_task(pid, per_thread ? PIDTYPE_PID : PIDTYPE_TGID);
	if (!clock_task)
		return false;
	use = per_thread ? sample_thread(clock_task) : sample_process(clock_task);
	if (expires)
		timer->remaining_ns = time_left(expires - use.used[which], timer->interval_ns);
	if (per_thread)
		timer->clock = (~pid_vnr(pid) << 3) | CPUCLOCK_PERTHREAD_MASK | which;
	else if (same_thread_group(clock_task, task))
		timer->clock = which == CPUCLOCK_SCHED ? CLOCK_PROCESS_CPUTIME_ID
						       : (~0 << 3) | which;
	else
		timer->clock = (~pid_vnr(pid) << 3) | which;
	return true;
}

static void read_clock_timer(struct k_itimer *from, struct kcr_timer *timer)
{
	bool silent = from->it_sigev_notify == SIGEV_NONE;
	s64 left;

	timer->clock = from->it_clock;
	if (from->it_clock == CLOCK_REALTIME_ALARM || from->it_clock == CLOCK_BOOTTIME_ALARM)
		left = ktime_to_ns(alarm_expires_remaining(&from->it.alarm.alarmtimer));
	else
		left = ktime_to_ns(hrtimer_get_remaining(&from->it.real.timer));
	/* A one-shot timer that nobody is told of is never marked as armed. */
	if (timer->interval_ns || kcr_posix_timer_armed(from) || (silent && left > 0))
		timer->remaining_ns = time_left(left, timer->interval_ns);
}

static void collect_posix_timer(struct collection *to, struct k_itimer *from,
				struct task_struct *task)
{
	const kernel_siginfo_t *info = kcr_posix_timer_info(from);
	struct kcr_timer timer = {
		.kind = KCR_TIMER_POSIX,
		.id = (long)from->it_id,
		.notify = from->it_sigev_notify,
		.signal = info->si_signo,
		.value = (unsigned long)info->si_value.sival_ptr,
		.interval_ns = ktime_to_ns(from->it_interval),
		.overrun = clamp_t(s64, from->it_overrun_last, 0, INT_MAX),
	};

	if (from->it_sigev_notify & SIGEV_THREAD_ID)
		timer.tid = pid_vnr(from->it_pid);
	if (from->it_clock < 0)
		read_cpu_timer(from, task, &timer);
	else
		read_clock_timer(from, &timer);
	collect(to, &timer);
}

static int collect_timers(struct kcr_member *member, struct collection *to)
{
	struct kcr_parked *parked;
	struct task_struct *task;
	struct k_itimer *timer;
	int ret = -ESRCH;

	spin_lock(&member->job->list_lock);
	parked = kcr_member_thread(member);
	if (parked) {
		task = parked->task;
		rcu_read_lock();
		spin_lock_irq(&task->sighand->siglock);
		collect_itimers(to, task);
		kcr_for_each_posix_timer(timer, task->signal)
			collect_posix_timer(to, timer, task);
		spin_unlock_irq(&task->sighand->siglock);
		rcu_read_unlock();
		ret = 0;
	}
	spin_unlock(&member->job->list_lock);
	return ret;
}

long kcr_ioc_timers(struct kcr_job *job, void __user *argp)
{
	struct collection collection = {};
	struct kcr_timers request;
	struct kcr_member *member;
	int ret;

	lockdep_assert_held(&job->lock);
	ret = kcr_request_get(&request, sizeof(request), 0, argp);
	if (ret)
		return ret;
	if (!job->parked)
		return -EINVAL;
	member = kcr_job_find(job, request.pid);
	if (!member)
		return -ESRCH;

	collection.capacity = min_t(u32, request.count, MAX_TIMERS);
	collection.timers = kvcalloc(collection.capacity, sizeof(struct kcr_timer),
				     GFP_KERNEL_ACCOUNT);
	if (!collection.timers)
		return -ENOMEM;
	ret = collect_timers(member, &collection);
	if (!ret && collection.nr > collection.capacity)
		ret = -ENOSPC;
	if (!ret && copy_to_user(u64_to_user_ptr(request.timers), collection.timers,
				 collection.nr * sizeof(struct kcr_timer)))
		ret = -EFAULT;
	kvfree(collection.timers);
	request.count = collection.nr;
	if (copy_to_user(argp, &request, sizeof(request)))
		return -EFAULT;
	return ret;
}
