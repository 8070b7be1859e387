// SPDX-License-Identifier: GPL-2.0
/*
 * See pid_namespace.h.  The restorer fails silently: it leaves its message in the page, and the
 * process outside reports it, runs hooks and chooses the exit code.  Signals are passed on, and
 * the terminal is handed over and taken back, by the one outside, where groups and sessions of
 * the caller have numbers.
 */
#include "util/pid_namespace.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/container.h"
#include "report/report.h"
#include "util/follow.h"
#include "util/foreground.h"
#include "util/pid_init.h"
#include "util/status.h"

static struct {
	struct pid_shared *shared;
	int socket;
	pid_t init;			/* outside: process 1 of the namespace; else 0 */
	pid_t leader;			/* outside: its PID there */
	bool inside;			/* this is the restorer */
} n = { .socket = -1 };

static bool say(char letter)
{
	return send(n.socket, &letter, 1, MSG_NOSIGNAL) == 1;
}

/* 0: the other end is closed. */
static char hear(void)
{
	char letter = 0;

	while (recv(n.socket, &letter, 1, 0) < 0 && errno == EINTR)
		;
	return letter;
}

/* ---- outside ----------------------------------------------------------------------- */

static int cannot(int err)
{
	switch (err) {
	case -EPERM:
		return report_fail(err, "you may not make a PID namespace, which takes CAP_SYS_ADMIN "
				   "(and a container that allows it): leave --pid-namespace out, or "
				   "have root restart the program");
	case -ENOSPC:
	case -EUSERS:
		return report_fail(-ENOSPC, "there are as many PID namespaces as may be, or they are too "
				   "deep (/proc/sys/user/max_pid_namespaces)");
	case -EINVAL:
	case -ENOSYS:
		return report_fail(-EOPNOTSUPP, "this kernel has no PID namespaces: leave "
				   "--pid-namespace out");
	default:
		return report_errno(err, "cannot make a PID namespace");
	}
}

static int check(const struct context *c)
{
	if (!context_process(c, 1))
		return 0;
	return report_fail(-EBUSY, "the program was process 1 of a container, and in a new PID namespace "
			   "that is cr_restart's: use --no-restore-pid without --pid-namespace");
}

/* What the restorer has left, once the namespace has ended. */
static int outcome(bool check_only)
{
	const struct pid_shared *s = n.shared;
	int status;

	while (waitpid(n.init, &status, 0) < 0 && errno == EINTR)
		;
	if (s->restored && s->err)
		return report_fail(s->err, "%s", s->message);
	if (s->restored && check_only)
		return PID_NAMESPACE_OUTSIDE;
	return report_fail(-EINTR, "cr_restart was ended in the program's PID namespace");
}

static bool commit(const struct pid_namespace *request)
{
	const struct pid_shared *s = n.shared;
	pid_t group = s->foreground ? container_outer_group(n.init, s->foreground) : 0;

	n.leader = container_outer_pid(n.init, s->leader);
	if (n.leader <= 0) {
		report_fail(-ESRCH, "the program is not to be seen in /proc outside of its namespace");
		return false;
	}
	n.shared->detached = request->detach;
	return !request->commit(n.leader, group > 0 ? group : 0);
}

static int supervise(const struct pid_namespace *request)
{
	for (;;) {
		switch (hear()) {
		case PID_SAYS_COMMIT:
			say(commit(request) ? PID_SAYS_YES : PID_SAYS_NO);
			break;
		case PID_SAYS_RUNNING:
			*request->result = n.shared->result;
			request->result->leader = n.leader;
			return PID_NAMESPACE_OUTSIDE;
		default:
			return outcome(request->check_only);
		}
	}
}

static int begin_inside(int outside, const struct context *c)
{
	close(outside);
	pid_init_run(n.shared, n.socket, c);
	n.inside = true;
	n.init = 0;
	status_close();			/* others wait for its end */
	return 0;
}

int pid_namespace_enter(void *arg)
{
	const struct pid_namespace *request = arg;
	int ends[2], err = check(request->context);

	if (err)
		return err;
	n.shared = mmap(NULL, sizeof(*n.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (n.shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return cannot(-errno);
	fflush(NULL);
	n.socket = ends[1];
	n.init = device_fork(-1, false, 0, CLONE_NEWPID | CLONE_NEWNS, SIGCHLD);
	if (!n.init)
		return begin_inside(ends[0], request->context);
	n.socket = ends[0];
	close(ends[1]);
	if (n.init < 0)
		return cannot(n.init);
	return supervise(request);
}

/* A letter has come, or the end; true: of the program. */
static bool take_letter(void)
{
	int status;

	switch (hear()) {
	case PID_SAYS_STOPPED:
		if (foreground_is_shared())
			foreground_stop(n.shared->stop_signal);
		return false;
	case PID_SAYS_LOADED:
		return false;
	case PID_SAYS_ENDED:
		return true;
	default:
		break;
	}
	while (waitpid(n.init, &status, 0) < 0 && errno == EINTR)
		;
	if (!n.shared->ended)		/* process 1 was killed */
		n.shared->status = status;
	return true;
}

int pid_namespace_follow(bool pass_on)
{
	struct pollfd wait[2] = { { .fd = n.socket, .events = POLLIN }, { .events = POLLIN } };
	siginfo_t info;
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	wait[1].fd = signalfd(-1, &set, SFD_CLOEXEC);	/* says that there is one; not which */
	for (;;) {
		poll(wait, 2, -1);
		if (wait[0].revents && take_letter())
			break;
		if (wait[1].revents && follow_wait(&info, 0) && info.si_signo != SIGCHLD && pass_on)
			follow_pass_on(&info, n.leader);
	}
	foreground_end();
	return n.shared->status;
}

int pid_namespace_result(void)
{
	/* Nobody has followed it to its end. */
	if (n.shared->detached && !n.shared->loaded && hear() != PID_SAYS_LOADED)
		return report_fail(-EINTR, "cr_restart was ended in the program's PID namespace");
	return n.shared->err ? report_fail(n.shared->err, "%s", n.shared->message) : 0;
}

/* ---- the restorer ------------------------------------------------------------------ */

int pid_namespace_commit(pid_t leader, pid_t foreground)
{
	n.shared->leader = leader;
	n.shared->foreground = foreground;
	follow_commit();
	if (!say(PID_SAYS_COMMIT) || hear() != PID_SAYS_YES)
		return report_fail(-ECANCELED, "cr_restart has ended outside of the PID namespace");
	n.shared->committed = true;
	return 0;
}

/* Until the leader has ended: its status, or -ECHILD if it is another process's child. */
static int wait_for(pid_t leader)
{
	int status;
	pid_t got = waitpid(leader, &status, WNOHANG);

	for (;;) {
		if (got == leader && !WIFSTOPPED(status))
			return status;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == leader) {
			n.shared->stop_signal = WSTOPSIG(status);
			say(PID_SAYS_STOPPED);
		}
		got = waitpid(-1, &status, WUNTRACED | __WALL);
	}
}

static void tell(int err)
{
	struct pid_shared *s = n.shared;

	s->err = err;
	snprintf(s->message, sizeof(s->message), "%s", err ? report_message() ?: strerror(-err) : "");
}

static void finish_loading(struct lazy *lazy)
{
	tell(restart_wait(lazy));
	n.shared->loaded = true;
	say(PID_SAYS_LOADED);
}

void pid_namespace_finish(int err, const struct restart_result *result, bool check_only)
{
	struct pid_shared *s = n.shared;

	if (!n.inside)
		return;
	tell(err);
	s->result = *result;
	s->result.lazy = NULL;		/* it is ours */
	s->restored = true;
	fflush(NULL);
	if (err || check_only)
		_exit(0);
	say(PID_SAYS_RUNNING);
	/* The one outside waits for that, and not for the end. */
	if (s->detached)
		finish_loading(result->lazy);
	s->status = wait_for(result->leader);
	if (!s->loaded)
		finish_loading(result->lazy);
	s->ended = true;
	_exit(0);
}
