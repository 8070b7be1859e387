// SPDX-License-Identifier: GPL-2.0
/*
 * Stops every process of the scope.  The module catches what members fork
 * while they are being stopped; a process that joins the scope otherwise (by
 * setpgid(), or forked by one not yet added) shows up when the scope is
 * collected again with all members parked: then it is added and the job
 * parked once more, until nothing new is seen.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/clock.h"
#include "proc/handle.h"
#include "proc/proc.h"
#include "report/code.h"
#include "report/report.h"

#define MAX_ROUNDS	100
#define MAX_WAITS	5000	/* of 2 ms each, for processes to end */
#define BUSY_TRIES	3
#define PARK_MS		3000u	/* per try */
#define LOADING_NS	600000000000ull	/* without --time */
#define MARGIN_NS	50000000ull	/* kept of --time for reporting the failure */

/* Milliseconds that the next PARK may take; 0: no time is left. */
static unsigned int park_time(const struct checkpoint *c)
{
	uint64_t now = now_ns() + MARGIN_NS, left;

	if (!c->deadline_ns)
		return PARK_MS;
	left = c->deadline_ns > now ? (c->deadline_ns - now) / 1000000 : 0;
	return left < PARK_MS ? left : PARK_MS;
}

static int still_loaded(const struct checkpoint *c, pid_t pid)
{
	/* Stopped processes do not wait for it: this attempt is given up. */
	if (!c->deadline_ns || c->attempt.members.count)
		return -EBUSY;
	report_clear();
	return report_fail(-ETIMEDOUT, "process %d was still being loaded by cr_restart --lazy at the end of "
			   "the time given by --time: try again when that is done", pid);
}

int stop_add(const struct checkpoint *c, const struct scope_process *p)
{
	uint64_t until = c->deadline_ns ? c->deadline_ns : now_ns() + LOADING_NS;
	int err = device_add(c->attempt.job, p->pid, p->thread, c->attempt.members.count ? 0 : until);

	return err == -EINPROGRESS ? still_loaded(c, p->pid) : err;
}

static bool is_member(const struct checkpoint *c, pid_t pid)
{
	const struct members *m = &c->attempt.members;

	for (size_t i = 0; i < m->count; i++)
		if (m->process[i].pid == pid)
			return true;
	return false;
}

static int collect(struct checkpoint *c)
{
	const struct members *m = &c->attempt.members;
	pid_t *pid = calloc(m->count + 1, sizeof(*pid));
	int err;

	if (!pid)
		return report_errno(-ENOMEM, "list of processes");
	for (size_t i = 0; i < m->count; i++)
		pid[i] = m->process[i].pid;
	err = scope_collect(&c->attempt.scope, c->options->scope, c->options->target, pid,
			    m->count);
	if (!err)
		err = forward_collect(c, pid, m->count);
	free(pid);
	return err;
}

int leave_out(struct checkpoint *c, pid_t pid)
{
	int err;

	if (is_excluded(c, pid))
		return 1;
	if (is_below_skipped(c, pid))
		err = exclude(c, pid, "so is a process that it descends from");
	else if (omit_is_inherited(c, pid))
		err = exclude(c, pid, "so is the process that made it");
	else
		return 0;
	return err ? err : 1;
}

/*
 * Adds what is in the scope and not in the job; returns their number, or -errno.
 * *ending: number of processes that are exiting (or in exec): look again later.
 */
static int add_new(struct checkpoint *c, int *ending)
{
	int added = 0;

	*ending = 0;
	for (size_t i = 0; i < c->attempt.scope.count; i++) {
		const struct scope_process *p = &c->attempt.scope.process[i];
		int err;

		if (p->zombie || is_member(c, p->pid))
			continue;
		err = leave_out(c, p->pid);
		if (err < 0)
			return err;
		if (err)
			continue;
		err = check_kind(c, p);
		if (!err)
			err = stop_add(c, p);
		if (err && err != -EEXIST && err != -ESRCH)
			return err;
		if (err)
			report_clear();
		if (err == -ESRCH)
			++*ending;
		else
			added++;
	}
	return added;
}

/* Copies those of the list that are in the scope, in its order; their number, or -errno. */
static int choose(struct checkpoint *c, const struct kcr_process *list, int count,
		  struct kcr_process *member)
{
	int n = 0;

	for (size_t i = 0; i < c->attempt.scope.count; i++) {
		for (int k = 0; k < count; k++) {
			int out;

			if (list[k].pid != c->attempt.scope.process[i].pid)
				continue;
			out = leave_out(c, list[k].pid);
			if (out < 0)
				return out;
			if (!out)
				member[n++] = list[k];
		}
	}
	return n;
}

/* The members: the stopped processes that are in the scope. */
static int list_members(struct checkpoint *c)
{
	struct kcr_process *list, *member;
	int count = device_list(c->attempt.job, &list), n;

	if (count < 0)
		return count;
	member = calloc(count + 1, sizeof(*member));
	if (!member) {
		free(list);
		return report_errno(-ENOMEM, "list of processes");
	}
	n = choose(c, list, count, member);
	free(list);
	if (n < 0) {
		free(member);
		return n;
	}
	free(c->attempt.members.process);
	c->attempt.members = (struct members) {
		.process = member, .count = n, .outsiders = n < count,
	};
	return 0;
}

/* PARK failed, so all run again: 0 to retry, or -errno. */
static int after_failure(struct checkpoint *c, int err, int *busy)
{
	if (err == -EBUSY && (c->deadline_ns ? park_time(c) > 0 : ++*busy < BUSY_TRIES))
		err = -EAGAIN;
	if (err != -EAGAIN && err != -EINPROGRESS)
		return err;
	report_clear();
	c->attempt.members.count = 0;
	return 0;
}

int stop_nobody(const struct checkpoint *c)
{
	static const char *const what[] = {
		[CHECKPOINT_PROCESS] = "process", [CHECKPOINT_GROUP] = "process group",
		[CHECKPOINT_SESSION] = "session", [CHECKPOINT_TREE] = "process tree",
	};

	return report_fail(-ESRCH, "%s %d: no process is left to checkpoint",
			   what[c->options->scope], c->options->target);
}

/* Breakpoints in the code are saved as part of it, and nobody would handle them. */
static int check_probes(const struct checkpoint *c, const struct kcr_process *m)
{
	if (!(m->flags & KCR_PROCESS_UPROBES))
		return 0;
	if (!c->options->skip_unsupported)
		return report_fail(-EOPNOTSUPP, "process %d is observed by uprobes (perf, bpftrace), or has "
				   "been: these cannot be saved (--skip-unsupported saves it all the "
				   "same, for when they are removed and no function is in one)", m->pid);
	report_warn("process %d is observed by uprobes (perf, bpftrace), or has been: if some are left, a "
		    "restarted program is ended by SIGTRAP or SIGSEGV", m->pid);
	return 0;
}

static int check_flags(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->attempt.members.count; i++) {
		const struct kcr_process *m = &c->attempt.members.process[i];

		if (m->flags & KCR_PROCESS_COMPAT)
			return report_fail(-EOPNOTSUPP, "process %d is a 32-bit program, which cannot "
					   "be checkpointed", m->pid);
		if (m->flags & KCR_PROCESS_RESTRICTED)
			return report_fail(-EOPNOTSUPP, "process %d may not use all of io_uring "
					   "(IORING_REGISTER_RESTRICTIONS of a thread), which cannot be "
					   "saved", m->pid);
		if (m->flags & KCR_PROCESS_AUTOREAP)
			return report_fail(-EOPNOTSUPP, "process %d leaves no zombie when it ends "
					   "(CLONE_AUTOREAP), which cannot be restored", m->pid);
		if ((m->flags & KCR_PROCESS_TRACED) &&
		    c->options->traced != CHECKPOINT_PTRACE_ALLOW)
			return report_fail(-CR_EPTRACED, "process %d is being debugged: detach the "
					   "debugger, or see --ptraced-skip", m->pid);
		if ((m->flags & KCR_PROCESS_TRACER) &&
		    c->options->tracer != CHECKPOINT_PTRACE_ALLOW)
			return report_fail(-CR_EPTRACER, "process %d debugs another process: end "
					   "that, or see --ptracer-skip", m->pid);
		if (check_probes(c, m))
			return -EOPNOTSUPP;
	}
	return 0;
}

/* Parks the current members of the job: 0 (*parked: done, else retry) or -errno. */
static int park(struct checkpoint *c, bool *parked, int *busy)
{
	struct kcr_park park;
	int err;

	if (c->deadline_ns && !park_time(c))
		return report_fail(-ETIMEDOUT, "the processes could not be stopped in the time "
				   "given by --time");
	err = device_park(c->attempt.job, park_time(c), &park);
	*parked = !err;
	if (!err)
		c->result->park_ns += park.elapsed_ns;
	else
		err = after_failure(c, err, busy);
	if (err != -ESRCH)
		return err;
	report_clear();
	return stop_nobody(c);
}

int stop_handle(const struct checkpoint *c, pid_t pid)
{
	int fd = handle_open(pid);

	if (fd < 0)
		return fd == -ESRCH ? fd : report_errno(fd, "process %d: cannot open a descriptor for "
							"its signals", pid);
	/* Only asked whether the process that the module knows has not ended by now. */
	if (device_closes_on_exec(c->attempt.job, pid, 0) != -ESRCH)
		return fd;
	close(fd);
	return -ESRCH;
}

/*
 * While they are parked: later a process may have ended, and its number be another's, which
 * is not to get root's signal.
 */
static int open_handles(struct checkpoint *c)
{
	struct members *m = &c->attempt.members;

	m->handle = malloc(m->count * sizeof(*m->handle));
	if (!m->handle)
		return report_errno(-ENOMEM, "list of processes");
	for (size_t i = 0; i < m->count; i++)
		m->handle[i] = -1;
	for (size_t i = 0; i < m->count; i++) {
		m->handle[i] = stop_handle(c, m->process[i].pid);
		if (m->handle[i] < 0 && m->handle[i] != -ESRCH)
			return m->handle[i];
	}
	return 0;
}

/* The module itself sends the signal to all members, unless it has let them go before. */
static int prepare_members(struct checkpoint *c)
{
	bool by_us = c->options->signal &&
		     (c->attempt.members.outsiders || c->attempt.clients.count);
	int err = check_flags(c);

	if (!err)
		err = requests_await(c);
	return err || !by_us ? err : open_handles(c);
}

int stop_processes(struct checkpoint *c)
{
	int rounds = 0, waits = 0, busy = 0, added, ending, err;
	bool parked = false;

	while (rounds < MAX_ROUNDS && waits < MAX_WAITS) {
		err = collect(c);
		if (!err && parked)
			err = list_members(c);
		added = err ? err : add_new(c, &ending);
		if (added < 0)
			return added;
		if (added) {
			rounds++;
			err = clients_notify(c);
			if (err)
				return err;
			err = park(c, &parked, &busy);
			if (err)
				return err;
		} else if (ending) {
			waits++;
			usleep(2000);
		} else {
			return parked && c->attempt.members.count ? prepare_members(c) :
			       stop_nobody(c);
		}
	}
	return report_fail(-EBUSY, waits == MAX_WAITS ? "a process is exiting and does not finish" :
			   "new processes appear faster than they can be stopped");
}

int stop_verify(struct checkpoint *c)
{
	int err;

	/* An older module only says so at the release. */
	if (!(c->attempt.info.features & KCR_FEATURE_RELEASE_TEST))
		return 0;
	err = device_release_test(c->attempt.job);
	c->attempt.whole = !err;
	return err;
}

int stop_run_on(struct checkpoint *c, int signal)
{
	int err = device_release(c->attempt.job, signal, &c->result->stopped_ns);

	if (err != -EAGAIN || !c->attempt.whole)
		return err;
	report_clear();
	return 0;
}

static void send_signal(const struct members *m, int signal)
{
	for (size_t i = 0; i < m->count; i++)
		handle_signal(m->handle[i], signal);
}

int stop_may_signal(const struct checkpoint *c)
{
	const struct members *m = &c->attempt.members;

	for (size_t i = 0; i < m->count; i++)
		if (kill(m->process[i].pid, 0) && errno == EPERM)
			return report_fail(-EPERM, "process %d cannot be sent a signal by this user: "
					   "nothing is ended", m->process[i].pid);
	return 0;
}

int stop_release(struct checkpoint *c, int signal)
{
	struct members *m = &c->attempt.members;
	int err = clients_finish(c);
	bool by_us;

	if (err)
		return err;
	clients_stop_again(c);
	/* Stopped processes outside the scope get no signal. */
	by_us = signal && (m->outsiders || m->released);
	/* A SIGCONT before the release would look as if somebody else had sent it. */
	if (by_us && signal != SIGCONT)
		send_signal(m, signal);
	if (!m->released)
		err = stop_run_on(c, by_us ? 0 : signal);
	if (by_us && signal == SIGCONT && !err)
		send_signal(m, signal);
	return err;
}
