// SPDX-License-Identifier: GPL-2.0
/*
 * Interval timers and POSIX timers, both with the time that was left.  An
 * absolute timer goes on with the time that was left, and overrun counts start
 * from 0 again.  A timer whose signals went to a thread that has ended sends none.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "device/device.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/file.h"

#define NSEC_PER_SEC	1000000000ull
/* Clocks of a process or thread: ~ID << 3 and these bits (clock_getcpuclockid(3)). */
#define CPU_CLOCK_BITS	7
#define CPU_CLOCK_THREAD 4
#define MANY_TIMERS	10000000

static Kcr__Timer *timer_message(const struct kcr_timer *from)
{
	Kcr__Timer *t = malloc(sizeof(*t));

	if (!t)
		return NULL;
	kcr__timer__init(t);
	t->kind = from->kind;
	t->id = from->id;
	t->remaining_ns = from->remaining_ns;
	t->interval_ns = from->interval_ns;
	if (from->kind != KCR_TIMER_POSIX)
		return t;
	t->has_clock = t->has_notify = t->has_signal = t->has_tid = true;
	t->has_value = t->has_overrun = true;
	t->clock = from->clock;
	t->notify = from->notify;
	t->signal = from->signal;
	t->tid = from->tid;
	t->value = from->value;
	t->overrun = from->overrun;
	return t;
}

static int timer_save(const struct process_probe *probe, Kcr__Process *p)
{
	struct kcr_timer *timers = NULL;
	int count, err = 0;

	if (p->n_timer)
		return 0;
	count = device_timers(probe->job, probe->pid, &timers);
	if (count <= 0) {
		free(timers);
		return count;
	}
	p->timer = calloc(count, sizeof(*p->timer));
	for (int i = 0; p->timer && i < count; i++) {
		p->timer[i] = timer_message(&timers[i]);
		if (!p->timer[i])
			break;
		p->n_timer = i + 1;
	}
	if (p->n_timer != (size_t)count)
		err = report_errno(-ENOMEM, "process %d: timers", probe->pid);
	free(timers);
	return err;
}

/* Whose CPU clock it is; 0: another clock, or the caller's own. */
static pid_t clock_owner(int32_t clock)
{
	if (clock >= 0 || (clock & CPU_CLOCK_BITS) == CPU_CLOCK_BITS)
		return 0;
	/* cppcheck-suppress shiftNegativeLHS ; as the kernel has it: GCC shifts the sign in */
	return ~(clock >> 3);
}

/* Of a thread only its own process can have one. */
static bool is_clock_saved(int32_t clock, Kcr__Process *const *process, size_t count)
{
	pid_t owner = clock_owner(clock);
	bool saved = !owner || clock & CPU_CLOCK_THREAD;

	for (size_t i = 0; i < count && !saved; i++)
		saved = process[i]->pid == owner;
	return saved;
}

/* Before Linux 6.15 rebuild/restorer.c counts up to them. */
static void warn_of_numbers(const Kcr__Process *p)
{
	int32_t highest = 0;

	for (size_t i = 0; i < p->n_timer; i++)
		if (p->timer[i]->kind == KCR_TIMER_POSIX && p->timer[i]->id > highest)
			highest = p->timer[i]->id;
	if (highest > MANY_TIMERS)
		report_warn("process %d has a POSIX timer with the number %d, up to which a restart has to "
			    "count under Linux before 6.15: that takes minutes", p->pid, highest);
}

int timers_check(Kcr__Process *const *process, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < process[i]->n_timer; k++)
			if (!is_clock_saved(process[i]->timer[k]->clock, process, count))
				return report_fail(-EOPNOTSUPP, "process %d has a timer on the CPU time "
						   "of process %d, which is not saved; such a timer "
						   "cannot be saved", process[i]->pid,
						   clock_owner(process[i]->timer[k]->clock));
	for (size_t i = 0; i < count; i++)
		warn_of_numbers(process[i]);
	return 0;
}

static void script_itimer(const Kcr__Timer *t, struct script *s)
{
	struct itimerval value = {
		.it_interval.tv_sec = t->interval_ns / NSEC_PER_SEC,
		.it_interval.tv_usec = t->interval_ns % NSEC_PER_SEC / 1000,
		.it_value.tv_sec = t->remaining_ns / NSEC_PER_SEC,
		.it_value.tv_usec = t->remaining_ns % NSEC_PER_SEC / 1000,
	};

	if (!t->remaining_ns)
		return;
	if (t->remaining_ns < 1000)
		value.it_value.tv_usec = 1;
	script_call(s, "setitimer", SYS_setitimer, t->id, script_data(s, &value, sizeof(value)),
		    0, 0, 0, 0);
}

/* The clock with the new IDs; *ok is cleared if there is none. */
static int32_t rebuilt_clock(struct rebuild *r, const Kcr__Process *p, int32_t clock, bool *ok)
{
	pid_t owner = clock_owner(clock);

	if (!owner)
		return clock;
	owner = clock & CPU_CLOCK_THREAD ? rebuilt_tid(r, p, owner) :
						 rebuild_wait_pid(r, owner);
	if (!owner)
		*ok = false;
	return (int32_t)(~(uint32_t)owner << 3) | (clock & CPU_CLOCK_BITS);
}

/* Alarm clocks need a privilege, which it may have given up since; timerfd.c does likewise. */
static int32_t without_alarm(const Kcr__Process *p, const Kcr__Timer *t, int32_t clock)
{
	bool may = !p->credentials || p->credentials->cap_effective & 1ull << CAP_WAKE_ALARM;

	if (may || (clock != CLOCK_REALTIME_ALARM && clock != CLOCK_BOOTTIME_ALARM))
		return clock;
	report_warn("process %d: timer %d of an alarm clock cannot wake the machine any more: that needs "
		    "CAP_WAKE_ALARM", p->pid, t->id);
	return clock == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME : CLOCK_BOOTTIME;
}

/* The kernel keeps the timer of a thread that has ended, whose ID may be another process's by now. */
static bool is_for_nobody(const Kcr__Process *p, const Kcr__Timer *t)
{
	if (!(t->notify & SIGEV_THREAD_ID))
		return false;
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->tid == t->tid)
			return false;
	return true;
}

static void script_posix(struct rebuild *r, const Kcr__Process *p, const Kcr__Timer *t,
			 struct script *s)
{
	struct itimerspec value = {
		.it_interval.tv_sec = t->interval_ns / NSEC_PER_SEC,
		.it_interval.tv_nsec = t->interval_ns % NSEC_PER_SEC,
		.it_value.tv_sec = t->remaining_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = t->remaining_ns % NSEC_PER_SEC,
	};
	struct sigevent event;
	bool ok = true;
	int32_t clock = without_alarm(p, t, rebuilt_clock(r, p, t->clock, &ok));
	pid_t tid = 0;

	memset(&event, 0, sizeof(event));
	event.sigev_value.sival_ptr = (void *)(uintptr_t)t->value;
	event.sigev_signo = t->signal;
	event.sigev_notify = is_for_nobody(p, t) ? SIGEV_NONE : (int)t->notify;
	if (event.sigev_notify & SIGEV_THREAD_ID) {
		tid = rebuilt_tid(r, p, t->tid);
		ok = ok && tid;
		event._sigev_un._tid = tid;
	}
	if (!ok) {
		report_warn("process %d: timer %d belongs to a thread that has a new ID, or to a "
			    "process that is not saved: it is lost", p->pid, t->id);
		return;
	}
	script_timer_create(s, "timer_create", clock, script_data(s, &event, sizeof(event)), t->id);
	if (t->remaining_ns)
		script_call(s, "timer_settime", SYS_timer_settime, t->id, 0,
			    script_data(s, &value, sizeof(value)), 0, 0, 0);
}

static int compare_ids(const void *a, const void *b)
{
	const Kcr__Timer *const *x = a, *const *y = b;

	return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static int timer_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	Kcr__Timer **posix = calloc(p->n_timer + 1, sizeof(*posix));
	size_t count = 0;

	if (!posix)
		return report_errno(-ENOMEM, "process %d: timers", p->pid);
	for (size_t i = 0; i < p->n_timer; i++)
		if (p->timer[i]->kind == KCR_TIMER_POSIX)
			posix[count++] = p->timer[i];
	/* The kernel assigns IDs upwards. */
	qsort(posix, count, sizeof(*posix), compare_ids);
	for (size_t i = 0; i < count; i++)
		script_posix(r, p, posix[i], s);
	free(posix);
	for (size_t i = 0; i < p->n_timer; i++)
		if (p->timer[i]->kind == KCR_TIMER_ITIMER)
			script_itimer(p->timer[i], s);
	return 0;
}

const struct attribute attribute_timer = {
	.name = "timers",
	.save = timer_save,
	.script_last = timer_script_last,
};
