// SPDX-License-Identifier: GPL-2.0
/*
 * TIMERS: the interval timers and the POSIX timers of a process, as time
 * left.  Timers run on while the process rests; one that fires meanwhile has
 * its signal queued, and the time left is to its next expiry.
 *
 * Timers are created and deleted only by threads of their process, which are at
 * rest while the job is parked.  The exit of the process removes the whole list at
 * once, under siglock.  So a list that is not empty under siglock is unchanged,
 * and can be read in portions, with interrupts off for each of them only.
 * it_lock can't be taken: siglock nests inside it.  Only expiry changes a
 * timer meanwhile, and it does not matter whether it is read before or after.
 *
 * CPU clocks are read afterwards, with no lock held: each may be that of any
 * process, with any number of threads.
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
#include "ioctl.h"
#include "park.h"

#define MAX_TIMERS	(1 << 16)	/* per call */
#define PORTION		128		/* read at once */

/* A timer on a CPU clock, until that clock can be read. */
struct cpu_timer_note {
	struct pid *pid;	/* whose clock it is, referenced; NULL: not on a CPU clock */
	u64 expires;		/* on that clock; 0: disarmed */
	clockid_t clock;
};

struct collection {
	struct kcr_timer *timers;
	struct cpu_timer_note *notes;
	u32 capacity;
	u32 nr;
	const struct k_itimer *last;	/* the last one read, NULL: none yet */
};

/* The next record, or NULL if there is no room; counted either way. */
static struct kcr_timer *next_timer(struct collection *to)
{
	return to->nr++ < to->capacity ? &to->timers[to->nr - 1] : NULL;
}

static void collect(struct collection *to, const struct kcr_timer *timer)
{
	struct kcr_timer *place = next_timer(to);

	if (place)
		*place = *timer;
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

static void collect_itimers(struct collection *to, struct task_struct *task,
			    const struct cpu_use *use)
{
	static const int ids[] = { [CPUCLOCK_PROF] = ITIMER_PROF, [CPUCLOCK_VIRT] = ITIMER_VIRTUAL };
	struct signal_struct *signal = task->signal;
	struct kcr_timer timer = { .kind = KCR_TIMER_ITIMER, .id = ITIMER_REAL };
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
		timer.remaining_ns = time_left(signal->it[clock].expires - use->used[clock],
					       timer.interval_ns);
		collect(to, &timer);
	}
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
	/* A one-shot timer without notification is never marked as armed. */
	if (timer->interval_ns || kcr_posix_timer_armed(from) || (silent && left > 0))
		timer->remaining_ns = time_left(left, timer->interval_ns);
}

static void note_cpu_timer(struct k_itimer *from, struct cpu_timer_note *note)
{
	note->pid = get_pid(from->it.cpu.pid);
	note->expires = kcr_cpu_timer_expires(&from->it.cpu);
	note->clock = from->it_clock;
}

static void collect_posix_timer(struct collection *to, struct k_itimer *from)
{
	const kernel_siginfo_t *info = kcr_posix_timer_info(from);
	struct kcr_timer *timer = next_timer(to);

	if (!timer)
		return;
	*timer = (struct kcr_timer){
		.kind = KCR_TIMER_POSIX,
		.id = (long)from->it_id,
		.notify = from->it_sigev_notify,
		.signal = info->si_signo,
		.value = (unsigned long)info->si_value.sival_ptr,
		.interval_ns = ktime_to_ns(from->it_interval),
		.overrun = clamp_t(s64, from->it_overrun_last, 0, INT_MAX),
	};
	/* The ID of a thread that has ended may be that of a new one, which gets no signals of it. */
	if (from->it_sigev_notify & SIGEV_THREAD_ID && pid_has_task(from->it_pid, PIDTYPE_PID))
		timer->tid = pid_vnr(from->it_pid);
	if (from->it_clock < 0)
		note_cpu_timer(from, &to->notes[timer - to->timers]);
	else
		read_clock_timer(from, timer);
}

/* siglock held.  1: there are more, 0: that was the last, -ESRCH: the process is exiting. */
static int collect_portion(struct collection *to, struct signal_struct *signal)
{
	struct k_itimer *timer = kcr_posix_timer_after(signal, NULL);
	int left = PORTION;

	if (to->last && !timer)
		return -ESRCH;
	if (to->last)
		timer = kcr_posix_timer_after(signal, to->last);
	for (; timer && left; timer = kcr_posix_timer_after(signal, timer), left--) {
		collect_posix_timer(to, timer);
		to->last = timer;
	}
	return timer ? 1 : 0;
}

/* The first portion has the interval timers as well. */
static int collect_some(struct kcr_member *member, struct collection *to,
			const struct cpu_use *use)
{
	struct kcr_parked *parked;
	struct sighand_struct *sighand;
	struct task_struct *task;
	int ret = -ESRCH;

	spin_lock(&member->job->list_lock);
	parked = kcr_member_thread(member);
	if (parked) {
		task = parked->task;
		sighand = kcr_parked_sighand(parked);
		spin_lock_irq(&sighand->siglock);
		/* Killed in a group stop: older kernels remove its timers without the lock. */
		if (!(task->signal->flags & SIGNAL_GROUP_EXIT)) {
			if (!to->last)
				collect_itimers(to, task, use);
			ret = collect_portion(to, task->signal);
		}
		spin_unlock_irq(&sighand->siglock);
	}
	spin_unlock(&member->job->list_lock);
	return ret;
}

/* The clock of a thread, or of a process: *last is the one read before. */
static bool read_cpu_clock(const struct cpu_timer_note *note, struct cpu_use *last,
			   struct pid **last_pid)
{
	bool per_thread = CPUCLOCK_PERTHREAD(note->clock);
	struct task_struct *task;

	if (note->pid == *last_pid && !per_thread)
		return true;
	rcu_read_lock();
	task = pid_task(note->pid, per_thread ? PIDTYPE_PID : PIDTYPE_TGID);
	if (task)
		*last = per_thread ? sample_thread(task) : sample_process(task);
	rcu_read_unlock();
	*last_pid = task && !per_thread ? note->pid : NULL;
	return task;
}

/* The timer is left as it is if the clock's thread or process has ended. */
static void finish_cpu_timer(struct kcr_member *member, const struct cpu_timer_note *note,
			     struct kcr_timer *timer, struct cpu_use *use, struct pid **last_pid)
{
	unsigned int which = CPUCLOCK_WHICH(note->clock);

	if (!read_cpu_clock(note, use, last_pid))
		return;
	if (note->expires)
		timer->remaining_ns = time_left(note->expires - use->used[which],
						timer->interval_ns);
	if (CPUCLOCK_PERTHREAD(note->clock))
		timer->clock = (~pid_vnr(note->pid) << 3) | CPUCLOCK_PERTHREAD_MASK | which;
	else if (note->pid == member->pid)
		timer->clock = which == CPUCLOCK_SCHED ? CLOCK_PROCESS_CPUTIME_ID
						       : (~0 << 3) | which;
	else
		timer->clock = (~pid_vnr(note->pid) << 3) | which;
}

static int finish_cpu_timers(struct kcr_member *member, struct collection *to)
{
	u32 i, nr = min(to->nr, to->capacity);
	struct pid *last_pid = NULL;
	struct cpu_use use;

	for (i = 0; i < nr; i++) {
		if (!to->notes[i].pid)
			continue;
		finish_cpu_timer(member, &to->notes[i], &to->timers[i], &use, &last_pid);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int collect_timers(struct kcr_member *member, struct collection *to)
{
	struct cpu_use use;
	int ret;

	rcu_read_lock();
	use = sample_process(member->leader);
	rcu_read_unlock();
	while ((ret = collect_some(member, to, &use)) == 1)
		cond_resched();
	return ret ?: finish_cpu_timers(member, to);
}

static int collection_alloc(struct collection *collection, u32 capacity)
{
	collection->capacity = capacity;
	collection->timers = kvcalloc(capacity, sizeof(*collection->timers), GFP_KERNEL_ACCOUNT);
	collection->notes = kvcalloc(capacity, sizeof(*collection->notes), GFP_KERNEL_ACCOUNT);
	return collection->timers && collection->notes ? 0 : -ENOMEM;
}

static void collection_free(struct collection *collection)
{
	u32 i;

	for (i = 0; collection->notes && i < collection->capacity; i++)
		put_pid(collection->notes[i].pid);
	kvfree(collection->notes);
	kvfree(collection->timers);
}

long kcr_ioc_timers(struct kcr_job *job, void *request)
{
	struct collection collection = {};
	struct kcr_timers *timers = request;
	struct kcr_member *member;
	int ret;

	member = kcr_job_find(job, timers->pid);
	if (!member)
		return -ESRCH;

	ret = collection_alloc(&collection, min_t(u32, timers->count, MAX_TIMERS));
	if (!ret)
		ret = collect_timers(member, &collection);
	if (!ret && collection.nr > collection.capacity)
		ret = -ENOSPC;
	if (!ret && copy_to_user(u64_to_user_ptr(timers->timers), collection.timers,
				 collection.nr * sizeof(struct kcr_timer)))
		ret = -EFAULT;
	timers->count = collection.nr;
	collection_free(&collection);
	return ret;
}
