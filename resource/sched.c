// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduling of every thread: policy, priorities, processors, I/O priority, and timer slack,
 * which checkpoint/settings.c takes from the kernel module.  What the caller of cr_restart
 * may not set, or this machine does not have, is a warning: a program runs on without it.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/types.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/cpuset.h"
#include "proc/proc.h"
#include "rebuild/script.h"
#include "report/report.h"

/* As <linux/sched/types.h>, which cannot be included beside <sched.h>. */
struct sched_parameters {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
	uint32_t util_min;
	uint32_t util_max;
};

#define KEEP_ALL	0x18	/* SCHED_FLAG_KEEP_POLICY and _PARAMS */
#define UTIL_CLAMP	0x60	/* SCHED_FLAG_UTIL_CLAMP */
#define UTIL_MAX	1024

/* ---- save --------------------------------------------------------------------- */

/* May it run wherever its cpuset lets it?  Then it is not bound: another cpuset has others. */
static bool is_unbound(pid_t tid, const uint8_t mask[CPUSET_BYTES])
{
	uint8_t allowed[CPUSET_BYTES];

	if (!memcmp(mask, cpuset_online(), CPUSET_BYTES))
		return true;
	cpuset_of(tid, allowed);
	return !memcmp(mask, allowed, CPUSET_BYTES);
}

static int save_affinity(Kcr__Sched *sched, pid_t tid)
{
	uint8_t mask[CPUSET_BYTES] = { 0 };
	long length = syscall(SYS_sched_getaffinity, tid, sizeof(mask), mask);

	if (length < 0)
		return report_errno(-errno, "thread %d: cannot read its processors", tid);
	if (is_unbound(tid, mask))
		return 0;
	while (length > 1 && !mask[length - 1])
		length--;
	sched->affinity.data = malloc(length);
	if (!sched->affinity.data)
		return report_errno(-ENOMEM, "thread %d: processors", tid);
	memcpy(sched->affinity.data, mask, length);
	sched->affinity.len = length;
	sched->has_affinity = true;
	return 0;
}

/* As the kernel tells it of a thread that has asked for nothing: since Linux 6.12, else 0. */
static uint64_t usual_slice(void)
{
	struct sched_parameters own = { .size = sizeof(own) };

	return syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) < 0 ? 0 : own.runtime;
}

static void save_time(Kcr__Sched *sched, const struct sched_parameters *now)
{
	if (now->policy == SCHED_DEADLINE) {
		sched->has_runtime = sched->has_deadline = sched->has_period = true;
		sched->runtime = now->runtime;
		sched->deadline = now->deadline;
		sched->period = now->period;
	} else if ((now->policy == SCHED_OTHER || now->policy == SCHED_BATCH) &&
		   now->runtime != usual_slice()) {
		sched->has_runtime = true;
		sched->runtime = now->runtime;
	}
	/* A maximum of 0 is that of a kernel without clamps. */
	sched->has_util_min = sched->has_util_max =
		now->util_max && (now->util_min || now->util_max != UTIL_MAX);
	sched->util_min = sched->has_util_min ? now->util_min : 0;
	sched->util_max = sched->has_util_max ? now->util_max : 0;
}

/* The nice value of its session, by which autogroups share processors. */
static int sched_save(const struct process_probe *probe, Kcr__Process *p)
{
	char text[64];
	int nice;

	if (p->pid == p->sid && proc_read(probe->thread, "autogroup", text, sizeof(text)) > 0 &&
	    sscanf(text, "%*s nice %d", &nice) == 1 && nice) {
		p->has_autogroup_nice = true;
		p->autogroup_nice = nice;
	}
	return 0;
}

static int sched_save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	struct sched_parameters now = { .size = sizeof(now) };
	Kcr__Sched *sched = malloc(sizeof(*sched));
	int io;

	(void)probe;
	if (!sched)
		return report_errno(-ENOMEM, "thread %d: scheduling", t->tid);
	kcr__sched__init(sched);
	t->sched = sched;
	if (syscall(SYS_sched_getattr, t->tid, &now, sizeof(now), 0) < 0)
		return report_errno(-errno, "thread %d: cannot read its scheduling", t->tid);
	sched->policy = now.policy;
	sched->has_nice = sched->has_priority = sched->has_flags = true;
	sched->nice = now.nice;
	sched->priority = now.priority;
	sched->flags = now.flags;
	save_time(sched, &now);
	io = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, t->tid);
	if (io >= 0 && IOPRIO_PRIO_CLASS(io) != IOPRIO_CLASS_NONE) {
		sched->has_io_priority = true;
		sched->io_priority = io;
	}
	return save_affinity(sched, t->tid);
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Warns once per process about what cannot be set. */
static bool warn_once(const Kcr__Process *p, const char *what)
{
	static char warned[4][16];
	static pid_t pid;

	if (pid != p->pid)
		memset(warned, 0, sizeof(warned));
	pid = p->pid;
	for (size_t i = 0; i < 4; i++) {
		if (!strncmp(warned[i], what, sizeof(*warned) - 1))
			return false;
		if (!warned[i][0]) {
			strncpy(warned[i], what, sizeof(*warned) - 1);
			break;
		}
	}
	return true;
}

/* Whether the kernel admits it shows there: to try it here would take the bandwidth of a deadline. */
static void script_policy(const Kcr__Process *p, const Kcr__Sched *sched, struct script *s)
{
	struct sched_parameters now = { .size = sizeof(now) };
	struct sched_parameters wanted = {
		.size = sizeof(wanted), .policy = sched->policy, .flags = sched->flags,
		.nice = sched->nice, .priority = sched->priority, .runtime = sched->runtime,
		.deadline = sched->deadline, .period = sched->period,
	};
	struct sched_parameters usual = { .size = sizeof(usual), .nice = sched->nice };

	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) == 0) {
		now.util_min = now.util_max = 0;
		if (now.policy != SCHED_DEADLINE)
			now.runtime = now.deadline = now.period = 0;
		if (!memcmp(&now, &wanted, sizeof(now)))
			return;
	}
	script_call_or_noted(s, "sched_setattr", p->pid, SYS_sched_setattr, 0,
			     script_data(s, &wanted, sizeof(wanted)), 0, 0, 0, 0);
	script_call_try(s, "sched_setattr", SYS_sched_setattr, 0,
			script_data(s, &usual, sizeof(usual)), 0, 0, 0, 0);
}

static void script_clamps(const Kcr__Process *p, const Kcr__Sched *sched, struct script *s)
{
	struct sched_parameters now = { .size = sizeof(now) };
	struct sched_parameters wanted = {
		.size = sizeof(wanted), .flags = KEEP_ALL | UTIL_CLAMP,
		.util_min = sched->util_min, .util_max = sched->util_max,
	};

	if (!sched->has_util_max)
		return;
	if (!syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) && !now.util_max) {
		if (warn_once(p, "clamps"))
			report_warn("process %d: this kernel has no utilization clamps, which it had "
				    "set", p->pid);
		return;
	}
	script_call_try(s, "sched_setattr", SYS_sched_setattr, 0,
			script_data(s, &wanted, sizeof(wanted)), 0, 0, 0, 0);
}

static int sched_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	char text[16];
	int err;

	(void)r;
	if (!p->has_autogroup_nice || getsid(0) != getpid())
		return 0;
	snprintf(text, sizeof(text), "%d", p->autogroup_nice);
	err = attribute_write_self("autogroup", text);
	if (err)
		report_warn("process %d: its session's nice value (/proc/PID/autogroup) cannot be set: "
			    "%s", p->pid, strerror(-err));
	return 0;
}

/*
 * A rank of an MPI job: its mpirun had bound it, the new one has bound cr_restart.  A
 * thread that had bound itself elsewhere keeps that if it is part of the new binding.
 */
static bool is_bound_anew(const Kcr__Process *p, const Kcr__Sched *sched, const uint8_t *now)
{
	const Kcr__Sched *first = p->thread[0]->sched;
	const uint8_t *mask = sched->affinity.data;

	if (first && first->has_affinity && first->affinity.len == sched->affinity.len &&
	    !memcmp(first->affinity.data, mask, sched->affinity.len))
		return true;
	for (size_t i = 0; i < sched->affinity.len; i++)
		if (mask[i] & ~now[i])
			return true;
	return false;
}

/* Part of what it was bound to would be fewer processors than it counts on: all or none. */
static void script_affinity(const struct rebuild *r, const Kcr__Process *p,
			    const Kcr__Sched *sched, struct script *s)
{
	uint8_t mask[CPUSET_BYTES] = { 0 }, now[CPUSET_BYTES] = { 0 }, allowed[CPUSET_BYTES];
	bool lost = false, known;
	size_t length = 0;	/* bytes of the mask to set: whole words for the kernel */

	if (!sched->has_affinity || sched->affinity.len > sizeof(mask))
		return;
	known = syscall(SYS_sched_getaffinity, 0, sizeof(now), now) > 0;
	if (r->any_cpu && is_bound_anew(p, sched, now))
		return;
	cpuset_of(PROC_SELF, allowed);
	for (size_t i = 0; i < sched->affinity.len; i++) {
		mask[i] = sched->affinity.data[i];
		lost |= mask[i] & ~allowed[i];
		if (mask[i])
			length = i / 8 * 8 + 8;
	}
	if (lost && warn_once(p, "processors"))
		report_warn("process %d was bound to processors that it may not use here: it is "
			    "not bound any more", p->pid);
	if (lost || !length || (known && !memcmp(now, mask, sizeof(mask))))
		return;
	script_call_try(s, "sched_setaffinity", SYS_sched_setaffinity, 0, length,
			script_data(s, mask, length), 0, 0, 0);
}

/* Real time takes a right that root may have lent the program, as by ionice(1). */
static void script_io_priority(const Kcr__Process *p, const Kcr__Sched *sched, struct script *s)
{
	long now = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);

	if (!sched->has_io_priority || sched->io_priority == now)
		return;
	if (IOPRIO_PRIO_CLASS(sched->io_priority) == IOPRIO_CLASS_RT) {
		if (!syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, sched->io_priority))
			syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
				IOPRIO_PRIO_CLASS(now) == IOPRIO_CLASS_NONE ? 0 : now);
		else if (warn_once(p, "I/O priority"))
			report_warn("process %d: its I/O priority (real time) takes privileges: it runs "
				    "on without", p->pid);
	}
	script_call_try(s, "ioprio_set", SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			sched->io_priority, 0, 0, 0);
}

static int sched_script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			       struct script *s)
{
	const Kcr__Sched *sched = t->sched;

	if (!sched)
		return 0;
	script_affinity(r, p, sched, s);
	if (sched->has_timer_slack_ns && sched->timer_slack_ns &&
	    sched->timer_slack_ns != (uint64_t)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
		script_call_try(s, "prctl(PR_SET_TIMERSLACK)", SYS_prctl, PR_SET_TIMERSLACK,
				sched->timer_slack_ns, 0, 0, 0, 0);
	script_io_priority(p, sched, s);
	script_policy(p, sched, s);
	script_clamps(p, sched, s);
	return 0;
}

const struct attribute attribute_sched = {
	.name = "scheduling",
	.save = sched_save,
	.rebuild = sched_rebuild,
	.save_thread = sched_save_thread,
	.script_thread = sched_script_thread,
};
