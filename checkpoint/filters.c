// SPDX-License-Identifier: GPL-2.0
/*
 * Has the seccomp filters of the scope read, which takes a ptrace stop of each thread.
 * To interrupt a running thread for that would show: many system calls return EINTR.  So
 * all are parked first, which does not, then seized and interrupted while they are parked;
 * released, each stops on its way to user mode, before it executes anything, is read and
 * let go.  If this program is killed meanwhile the kernel lets them go.
 */
#include "checkpoint/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/seccomp.h"

#define STATUS_SIZE	(512u << 10)
#define PARK_MS		3000u
#define PARK_TRIES	10

struct caught {
	pid_t pid, tid;
	bool seized;
};

struct catch {
	struct caught *thread;
	size_t count;
	char *status;			/* STATUS_SIZE bytes */
};

/* ---- which threads -------------------------------------------------------------- */

static int add_thread(struct catch *k, pid_t pid, pid_t tid)
{
	struct caught *larger = realloc(k->thread, (k->count + 1) * sizeof(*larger));

	if (!larger)
		return report_errno(-ENOMEM, "seccomp filters of process %d", pid);
	k->thread = larger;
	larger[k->count++] = (struct caught){ .pid = pid, .tid = tid };
	return 0;
}

static bool thread_status(struct catch *k, pid_t pid, pid_t tid)
{
	char name[40];

	snprintf(name, sizeof(name), "task/%d/status", tid);
	return proc_read(pid, name, k->status, STATUS_SIZE) > 0;
}

static int list_threads(struct catch *k, pid_t pid)
{
	DIR *threads = proc_list(pid, "task");
	int err = 0;
	pid_t tid;

	while (!err && (tid = proc_next(threads)) >= 0)
		if (thread_status(k, pid, tid) && seccomp_is_unread(pid, tid, k->status))
			err = add_thread(k, pid, tid);
	if (threads)
		closedir(threads);
	return err;
}

/* all: also of processes whose first thread has no filters. */
static int list_unread(const struct checkpoint *c, bool all, struct catch *k)
{
	int err = 0;

	k->count = 0;
	for (size_t i = 0; !err && i < c->attempt.scope.count; i++) {
		const struct scope_process *p = &c->attempt.scope.process[i];

		if (p->zombie || is_excluded(c, p->pid))
			continue;
		if (all || (thread_status(k, p->pid, p->thread) &&
			    status_number(k->status, "Seccomp", 10, 0)))
			err = list_threads(k, p->pid);
	}
	return err;
}

/* ---- parking -------------------------------------------------------------------- */

/* Of a new attempt the job is still empty. */
static int add_processes(struct checkpoint *c)
{
	int err = scope_collect(&c->attempt.scope, c->options->scope, c->options->target, NULL, 0);

	for (size_t i = 0; !err && i < c->attempt.scope.count; i++) {
		const struct scope_process *p = &c->attempt.scope.process[i];

		if (p->zombie || is_excluded(c, p->pid))
			continue;
		err = stop_add(c, p);
		if (err != -EEXIST && err != -ESRCH)
			continue;
		report_clear();
		err = 0;
	}
	return err;
}

static int park(struct checkpoint *c)
{
	struct kcr_park park;
	int err = -EAGAIN;

	for (int i = 0; i < PARK_TRIES && (err == -EAGAIN || err == -EBUSY); i++) {
		report_clear();
		err = add_processes(c);
		if (!err)
			err = device_park(c->attempt.job, PARK_MS, &park);
	}
	return err;
}

/* ---- catching --------------------------------------------------------------------- */

static int cannot_seize(pid_t pid, int err)
{
	if (err == -EPERM)
		return report_fail(-EPERM, "process %d has seccomp filters, and only a debugger can read "
				   "them, which is forbidden here (/proc/sys/kernel/yama/ptrace_scope, "
				   "or a security module)", pid);
	return report_errno(err, "process %d: attaching to it to read its seccomp filters", pid);
}

static bool has_ended(struct catch *k, const struct caught *t)
{
	const char *state = thread_status(k, t->pid, t->tid) ? status_value(k->status, "State") : NULL;

	return !state || *state == 'Z' || *state == 'X';
}

/* They cannot go on before they are released. */
static int seize_all(struct catch *k)
{
	for (size_t i = 0; i < k->count; i++) {
		struct caught *t = &k->thread[i];
		int err = ptrace(PTRACE_SEIZE, t->tid, 0, 0) < 0 ? -errno : 0;

		if (err && !has_ended(k, t))
			return cannot_seize(t->pid, err);
		t->seized = !err;
		if (t->seized)
			ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	}
	return 0;
}

/* Waits for its stop.  False: it has ended. */
static bool await_stop(const struct caught *t)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, t->tid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) < 0)
		if (errno != EINTR)
			return false;
	if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
		return true;
	/* It is for its parent to know, which may be this program. */
	if (t->tid != t->pid || stat_parent(t->pid) != getpid())
		waitid(P_PID, t->tid, &info, WEXITED | WNOHANG | __WALL);
	return false;
}

/* Reads all and lets all go, whatever fails; `err`: what has failed before. */
static int read_all(const struct catch *k, int err)
{
	for (size_t i = 0; i < k->count; i++) {
		const struct caught *t = &k->thread[i];

		if (!t->seized || !await_stop(t))
			continue;
		if (!err)
			err = seccomp_read(t->pid, t->tid);
		ptrace(PTRACE_DETACH, t->tid, 0, 0);
	}
	return err;
}

static int catch_all(struct checkpoint *c, bool all, struct catch *k)
{
	uint64_t stopped_ns;
	int err = park(c), later;

	if (err == -ESRCH) {		/* all have ended: left to stop.c */
		report_clear();
		return 0;
	}
	if (!err)
		err = list_unread(c, all, k);
	if (err)
		return err;
	err = seize_all(k);
	later = device_release(c->attempt.job, 0, &stopped_ns);
	if (later == -EAGAIN) {		/* a stopped one was continued: none of our business */
		report_clear();
		later = 0;
	}
	return read_all(k, err ?: later);
}

int filters_read(struct checkpoint *c, bool all)
{
	struct catch k = { .status = malloc(STATUS_SIZE) };
	int err = k.status ? 0 : report_errno(-ENOMEM, "seccomp filters");

	if (!err)
		err = all ? 0 : list_unread(c, all, &k);
	if (!err && (all || k.count))
		err = catch_all(c, all, &k);
	free(k.thread);
	free(k.status);
	return err;
}
