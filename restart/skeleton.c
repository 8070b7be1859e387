// SPDX-License-Identifier: GPL-2.0
/*
 * Creates the bare processes.  Each forks its children (resource/family.c decides which and
 * when), joins its session and group, waits until all exist, and then turns into
 * the saved process; zombies exit instead.  They synchronize in a shared page.
 */
#include "restart/skeleton.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "device/refused.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/identity.h"
#include "resource/seccomp.h"
#include "restart/clocks.h"
#include "restart/ids.h"
#include "restart/lazy.h"
#include "restart/process.h"
#include "restart/suspend.h"

#define HELPER_FIRST	32767	/* helpers get free PIDs from here downwards */
#define HELPER_LAST	300

/* Shared by all processes of the skeleton. */
struct meeting {
	atomic_int made;	/* processes that exist; group leaders lead their groups */
	atomic_int joined;	/* those, but for leaders that are to leave theirs */
	atomic_int grouped;	/* processes that are in their groups */
};

static struct {
	struct rebuild *rebuild;
	const struct context *context;
	const struct restart_options *options;
	const struct relation *plan;
	struct meeting *meeting;
	struct restorer_status *status;
	bool module_clones;
	pid_t builder;
	size_t nr_forked;	/* processes that are created here */
} k;

static const Kcr__Process *saved(size_t i)
{
	return k.context->process[i];
}

static pid_t new_pid(size_t i)
{
	return k.rebuild->new_pid[i];
}

/* ---- meeting ------------------------------------------------------------------ */

static void announce(atomic_int *count)
{
	atomic_fetch_add(count, 1);
	syscall(SYS_futex, count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* If one never arrives, the builder closes the job, which kills those waiting. */
static void await(atomic_int *count)
{
	int total = (int)k.nr_forked, seen;

	while ((seen = atomic_load(count)) < total)
		syscall(SYS_futex, count, FUTEX_WAIT, seen, NULL, NULL, 0);
}

/* ---- forking ------------------------------------------------------------------ */

static pid_t fork_as(pid_t number, int exit_signal)
{
	return device_fork(k.rebuild->job, k.module_clones, number, 0, exit_signal);
}

static bool number_is_saved(pid_t number)
{
	for (size_t i = 0; i < k.context->nr_processes; i++) {
		const Kcr__Process *p = saved(i);

		if (p->pid == number || p->pgid == number)
			return true;
		for (size_t t = 0; t < p->n_thread; t++)
			if (p->thread[t]->tid == number)
				return true;
	}
	return false;
}

/* A helper takes no PID that a saved process or thread will need. */
static pid_t fork_helper(void)
{
	if (!k.options->restore_pid)
		return fork_as(0, SIGCHLD);
	for (pid_t number = HELPER_FIRST; number >= HELPER_LAST; number--) {
		pid_t pid;

		if (number_is_saved(number))
			continue;
		pid = fork_as(number, SIGCHLD);
		if (pid != -EEXIST)
			return pid;
	}
	return -EAGAIN;
}

/* Reports a failed clone for this saved process. */
static int not_made(int err, pid_t pid, const char *what)
{
	if (err == -EPERM)
		return refused_clone(pid, k.options->restore_pid ? pid : 0);
	if (err == -EDQUOT)
		return refused_process(pid, err);
	return report_errno(err, "process %d: %s", pid, what);
}

static void give_up(int err, const char *what, size_t i)
{
	report_errno(err, "process %d: %s", saved(i)->pid, what);
	_exit(1);
}

static void live(size_t i) __attribute__((noreturn));

/* Retries if the PID is in use: the killed original may not be reaped yet. */
static pid_t fork_patiently(pid_t number, int exit_signal)
{
	pid_t pid = fork_as(number, exit_signal);

	for (int i = 0; pid == -EEXIST && i < IDS_TRIES; i++) {
		usleep(IDS_WAIT_US);
		pid = fork_as(number, exit_signal);
	}
	return pid;
}

/* The exit signal for the parent; for cr_restart, which adopts it, SIGCHLD. */
static int exit_signal(size_t i)
{
	const Kcr__Process *p = saved(i);

	if (!p->has_exit_signal || k.plan[i].parent == FAMILY_OUTSIDE)
		return SIGCHLD;
	return (int)p->exit_signal;
}

/* 0 or -errno, in the caller only. */
static int make(size_t i)
{
	const Kcr__Process *p = saved(i);
	pid_t pid = fork_patiently(k.options->restore_pid ? p->pid : 0, exit_signal(i));

	if (pid == 0)
		live(i);
	if (pid == -EEXIST && (p->pid == k.builder || p->pid == 1))
		return report_fail(-EBUSY, "process ID %d is that of %s: use --no-restore-pid, or "
				   "start cr_restart differently (bwrap: --as-pid-1)", p->pid,
				   p->pid == 1 ? "init" : "cr_restart itself");
	if (pid == -EEXIST && kill(p->pid, 0) && errno == ESRCH)
		return report_fail(-EBUSY, "process ID %d is in use as that of a process group or "
				   "session: end its processes (pgrep -g %d; pgrep -s %d), or use "
				   "--no-restore-pid", p->pid, p->pid, p->pid);
	if (pid == -EEXIST)
		return ids_refuse(p->pid);
	if (pid < 0)
		return not_made(pid, p->pid, "cannot make it");
	k.rebuild->new_pid[i] = pid;
	return 0;
}

static int reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

/* A process of our session whose parent had exited: forked by a helper that exits. */
static int make_hosted(size_t i)
{
	pid_t helper = fork_helper();

	if (helper == 0)
		_exit(make(i) ? 1 : 0);
	if (helper < 0)
		return not_made(helper, saved(i)->pid, "cannot make its helper");
	return reap(helper);
}

/* ---- one process --------------------------------------------------------------- */

static void make_children(size_t i, bool early)
{
	for (size_t c = 0; c < k.context->nr_processes; c++) {
		const struct relation *r = &k.plan[c];

		if (process_is_sharer(saved(c)))
			continue;
		if (r->hosted ? (early || r->session != i) :
		    (r->parent != i || r->early != early))
			continue;
		if (r->hosted ? make_hosted(c) : make(c))
			_exit(1);
	}
}

/* For groups of our session whose leader is dead: helpers with the leaders' PIDs. */
static size_t make_group_leaders(size_t i, pid_t *helpers)
{
	size_t n = 0;

	for (size_t c = 0; c < k.context->nr_processes && k.options->restore_pid; c++) {
		int number = k.plan[c].group_number;
		bool known = false;
		pid_t pid;

		if (k.plan[c].session != i || !number)
			continue;
		for (size_t h = 0; h < n; h++)
			known |= helpers[h] == number;
		if (known)
			continue;
		pid = fork_patiently(number, SIGCHLD);
		if (pid == 0) {
			setpgid(0, 0);
			await(&k.meeting->grouped);
			_exit(0);
		}
		if (pid < 0) {
			not_made(pid, saved(c)->pid, "cannot make the leader of its group");
			_exit(1);
		}
		setpgid(pid, pid);
		helpers[n++] = pid;
	}
	return n;
}

/* The number of a group of cr_restart's session that is wanted there: 0: none. */
static pid_t outer_group(size_t i)
{
	const struct relation *r = &k.plan[i];
	bool outer = r->session == FAMILY_OUTSIDE && r->group == FAMILY_OUTSIDE;

	return k.options->own_pids && outer && !process_is_sharer(saved(i)) ? saved(i)->pgid : 0;
}

/*
 * In a PID namespace of its own the program's groups have their old numbers also where the
 * leader is not saved: each is made by a helper with that PID, which the builder reaps later.
 */
static int make_outer_groups(void)
{
	for (size_t i = 0; i < k.context->nr_processes; i++) {
		pid_t group = outer_group(i), helper;

		if (group <= 1 || group == getpgrp())
			continue;
		if (group == k.builder) {
			setpgid(0, 0);
			continue;
		}
		helper = fork_as(group, SIGCHLD);
		if (helper == 0) {
			setpgid(0, 0);
			await(&k.meeting->grouped);
			_exit(0);
		}
		if (helper > 0)
			setpgid(helper, helper);
		else if (helper != -EEXIST)	/* made for another process */
			return not_made(helper, saved(i)->pid, "cannot make the leader of its group");
	}
	return 0;
}

static void join_group(size_t i)
{
	const struct relation *r = &k.plan[i];
	pid_t group = 0;

	if (r->group != FAMILY_OUTSIDE)
		group = new_pid(r->group);
	else if (r->group_number && k.options->restore_pid)
		group = r->group_number;
	else if (outer_group(i) > 1)
		group = outer_group(i);
	else if (k.options->restore_pgid)
		group = saved(i)->pgid;
	else if (r->session == FAMILY_OUTSIDE)	/* whatever its parent led when it was made */
		group = getpgid(k.builder);
	else if (r->moves)
		group = new_pid(r->session);
	if (group && getpgrp() != group && setpgid(0, group))
		give_up(-errno, "cannot join its process group", i);
}

static void check_place(size_t i)
{
	const struct relation *r = &k.plan[i];
	pid_t parent = r->parent == FAMILY_OUTSIDE ? k.builder : new_pid(r->parent);

	if (getppid() != parent) {
		report_fail(-EOPNOTSUPP, "process %d cannot be made a child of process %d: "
			    "it is in a session that its parent is not the origin of",
			    saved(i)->pid, saved(i)->ppid);
		_exit(1);
	}
	if (k.options->restore_sid && getsid(0) != saved(i)->sid) {
		report_fail(-EPERM, "process %d cannot join session %d, which is not in the "
			    "file: leave --restore-sid out", saved(i)->pid, saved(i)->sid);
		_exit(1);
	}
}

/* All of them: sigfillset() omits the two that the C library's timers and threads use. */
static void block_signals(bool block)
{
	uint64_t set = block ? UINT64_MAX : 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof(set));
}

static void end_as_zombie(const Kcr__Process *p)
{
	int status = (int)p->exit_code;
	struct rlimit none = { 0, 0 };

	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &none);
		prctl(PR_SET_DUMPABLE, 0);
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
		block_signals(false);
	}
	_exit(WEXITSTATUS(status));
}

/* Waits until zombies are dead, and drops their signals, before the parent runs. */
static void settle_children(size_t i)
{
	const struct timespec now = { 0, 0 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t c = 0; c < k.context->nr_processes; c++) {
		if (k.plan[c].parent != i || saved(c)->state != KCR__PROCESS__STATE__ZOMBIE)
			continue;
		waitid(P_PID, (id_t)new_pid(c), &info, WEXITED | WNOWAIT | __WALL);
		if (exit_signal(c))
			sigaddset(&set, exit_signal(c));
	}
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
}

/*
 * The process with this one's file descriptors: itself, or the one that it shared
 * the table with; then it gets a copy.  Images of 0.1.0 may have such.
 */
static const Kcr__Process *files_of(const Kcr__Process *p)
{
	for (size_t i = 0; i < k.context->nr_processes && p->has_files_id; i++) {
		const Kcr__Process *q = saved(i);

		if (q == p || !q->has_files_id || q->files_id != p->files_id ||
		    q->state == KCR__PROCESS__STATE__ZOMBIE || !q->n_descriptor)
			continue;
		report_warn("process %d shared its table of descriptors with process %d and gets "
			    "a copy of it", p->pid, q->pid);
		return q;
	}
	return p;
}

/* With parent, group and session set: restores file descriptors, attributes, memory. */
static void become(size_t i)
{
	const Kcr__Process *p = saved(i);
	struct process_exit how = {
		.rebuild = k.rebuild, .process = p, .status = k.status,
		/* The module creates nothing under a filter, suspended or not. */
		.module_clones = k.module_clones && !seccomp_has(p),
		.cont = k.options->signal == SIGCONT,
	};
	int err;

	err = lazy_offer(k.rebuild, i);
	if (err)
		give_up(err, "cannot be loaded lazily", i);
	/* Settings of open files (F_SETOWN, …) keep the credentials they are made with. */
	err = identity_enter(p->credentials);
	if (!err)
		err = files_install(k.rebuild, p->n_descriptor ? p : files_of(p));
	identity_leave();
	for (size_t a = 0; attributes[a] && !err; a++)
		if (attributes[a]->rebuild)
			err = attributes[a]->rebuild(k.rebuild, p);
	if (!err && seccomp_has(p))
		err = suspend_self(k.rebuild, i);
	if (!err)
		err = process_become(&how);
	give_up(err, "cannot be restored", i);
}

static void start_session(size_t i)
{
	int err;

	if (setsid() < 0)
		give_up(-errno, "cannot start its session", i);
	err = terminal_take(k.rebuild, saved(i));
	if (err)
		give_up(err, "cannot get back its terminal", i);
}

/* Forks children, starts session and group.  Returns the number of helpers to reap. */
static size_t take_place(size_t i, pid_t *helpers)
{
	const Kcr__Process *p = saved(i);

	k.rebuild->new_pid[i] = getpid();
	if (p->subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	make_children(i, true);
	if (k.plan[i].session == i)
		start_session(i);
	if ((k.plan[i].group == i || k.plan[i].moves) && getpgrp() != getpid() && setpgid(0, 0))
		give_up(-errno, "cannot lead its process group", i);
	make_children(i, false);
	return make_group_leaders(i, helpers);
}

static void prepare(size_t i)
{
	const Kcr__Process *p = saved(i);
	int err;

	if (p->state == KCR__PROCESS__STATE__ZOMBIE)
		return;
	err = identity_enter(p->credentials);
	for (size_t a = 0; attributes[a] && !err; a++)
		if (attributes[a]->prepare)
			err = attributes[a]->prepare(k.rebuild, p);
	identity_leave();
	if (err)
		give_up(err, "cannot be restored", i);
}

static void live(size_t i)
{
	pid_t *helpers = calloc(k.context->nr_processes, sizeof(*helpers));
	const Kcr__Process *parent;
	size_t nr_helpers;

	/* Signals sent meanwhile, also by exiting children, stay pending. */
	block_signals(true);
	if (!helpers)
		give_up(-ENOMEM, "cannot be made", i);
	if (clocks_enter(saved(i)) || identity_take(saved(i)->credentials))
		_exit(1);
	parent = context_process(k.context, saved(i)->ppid);
	identity_forget_keys(saved(i)->credentials, parent ? parent->credentials : NULL);
	nr_helpers = take_place(i, helpers);

	announce(&k.meeting->made);
	await(&k.meeting->made);
	if (!k.plan[i].moves)
		join_group(i);
	announce(&k.meeting->joined);
	await(&k.meeting->joined);
	if (k.plan[i].moves)
		join_group(i);
	check_place(i);
	prepare(i);
	announce(&k.meeting->grouped);
	await(&k.meeting->grouped);
	for (size_t h = 0; h < nr_helpers; h++)
		reap(helpers[h]);
	free(helpers);

	if (saved(i)->state == KCR__PROCESS__STATE__ZOMBIE)
		end_as_zombie(saved(i));
	settle_children(i);
	become(i);
	_exit(1);
}

/* ---- the builder ----------------------------------------------------------------- */

/* Processes in the memory of another are created later, by its script. */
static void leave_sharers(void)
{
	for (size_t i = 0; i < k.context->nr_processes; i++)
		if (!process_is_sharer(saved(i)))
			k.nr_forked++;
		else if (k.options->restore_pid)
			k.rebuild->new_pid[i] = saved(i)->pid;
}

int skeleton_make(struct rebuild *r, const struct restart_options *options,
		  struct restorer_status *status, bool module_clones)
{
	const struct context *c = r->context;
	int err;

	k.rebuild = r;
	k.context = c;
	k.options = options;
	k.status = status;
	k.module_clones = module_clones;
	k.builder = getpid();
	k.nr_forked = 0;
	k.plan = family_plan(c->process, c->nr_processes);
	if (!k.plan)
		return report_errno(-ENOMEM, "restart");
	k.meeting = mmap(NULL, sizeof(*k.meeting), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k.meeting == MAP_FAILED)
		return report_errno(-errno, "restart");

	leave_sharers();
	err = suspend_begin(r, fork_helper);
	/* Those whose adoptive parent is not in the file are adopted by us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!err)
		err = make_outer_groups();
	for (size_t i = 0; i < c->nr_processes && !err; i++)
		if (k.plan[i].parent == FAMILY_OUTSIDE && !k.plan[i].hosted &&
		    !process_is_sharer(saved(i)))
			err = make(i);
	return err;
}
