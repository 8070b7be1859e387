// SPDX-License-Identifier: GPL-2.0
/*
 * The helper and those that ask it: each has a word in shared memory.  The helper sleeps
 * until a signal says that there is a request, or that a traced thread has stopped (each
 * new thread does, before it runs) and is to go on.  See suspend.h.
 */
#include "restart/suspend.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/seccomp.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP	128
#endif

enum { IDLE, WANTED, DONE };	/* or -errno */

static struct {
	pid_t helper;			/* 0: none */
	atomic_int *state;		/* of each process of the context */
} suspension;

/* ---- the helper ------------------------------------------------------------------- */

static void answer(const struct rebuild *r)
{
	const long options = PTRACE_O_SUSPEND_SECCOMP | PTRACE_O_TRACECLONE;

	for (size_t i = 0; i < r->context->nr_processes; i++) {
		atomic_int *state = &suspension.state[i];

		if (atomic_load(state) != WANTED)
			continue;
		atomic_store(state, ptrace(PTRACE_SEIZE, r->new_pid[i], 0, options) < 0 ? -errno : DONE);
		syscall(SYS_futex, state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}

/* A stop by a signal of the group lasts; others, of events of ptrace, are for us alone. */
static void go_on(pid_t tid, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
		ptrace(PTRACE_LISTEN, tid, 0, 0);
	else
		ptrace(PTRACE_CONT, tid, 0, event ? 0L : (long)signal);
}

static void serve(const struct rebuild *r) __attribute__((noreturn));
static void serve(const struct rebuild *r)
{
	sigset_t wanted;
	int status;
	pid_t tid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGUSR1);
	for (;;) {
		answer(r);
		while ((tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
			if (WIFSTOPPED(status))
				go_on(tid, status);
		sigwaitinfo(&wanted, NULL);
	}
}

/* ---- the others ------------------------------------------------------------------- */

static bool is_needed(const struct context *c)
{
	for (size_t i = 0; i < c->nr_processes; i++)
		if (seccomp_has(c->process[i]))
			return true;
	return false;
}

int suspend_begin(const struct rebuild *r, pid_t (*fork_helper)(void))
{
	size_t length = r->context->nr_processes * sizeof(*suspension.state);
	sigset_t all, old;
	int err;

	if (!is_needed(r->context))
		return 0;
	suspension.state = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				-1, 0);
	if (suspension.state == MAP_FAILED)
		return report_errno(-errno, "suspending seccomp");
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	suspension.helper = fork_helper();
	if (!suspension.helper)
		serve(r);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (suspension.helper > 0)
		return 0;
	err = report_errno(suspension.helper, "suspending seccomp: cannot make a helper");
	suspension.helper = 0;
	return err;
}

int suspend_self(const struct rebuild *r, size_t index)
{
	atomic_int *state = &suspension.state[index];
	pid_t pid = r->context->process[index]->pid;
	int now;

	atomic_store(state, WANTED);
	if (kill(suspension.helper, SIGUSR1) < 0)
		return report_errno(-errno, "process %d: suspending seccomp", pid);
	while ((now = atomic_load(state)) == WANTED)
		syscall(SYS_futex, state, FUTEX_WAIT, WANTED, NULL, NULL, 0);
	if (now == -EPERM)
		return report_fail(now, "process %d has seccomp filters, and only a debugger can suspend "
				   "them during the restart, which is forbidden here "
				   "(/proc/sys/kernel/yama/ptrace_scope, a security module, or a filter "
				   "of the caller)", pid);
	return now < 0 ? report_errno(now, "process %d: suspending seccomp", pid) : 0;
}

void suspend_end(void)
{
	if (suspension.helper <= 0)
		return;
	kill(suspension.helper, SIGKILL);
	/* When it can be waited for it has detached from all. */
	while (waitpid(suspension.helper, NULL, __WALL) < 0 && errno == EINTR)
		;
	suspension.helper = 0;
}
