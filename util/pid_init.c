// SPDX-License-Identifier: GPL-2.0
/*
 * See pid_init.h.  When process 1 of a PID namespace ends the kernel kills all others in it:
 * so it ends when cr_restart outside has ended, unless it was told to stay, and when the
 * restorer is killed.  When the program's leader has ended by itself, it stays for what
 * else runs in the namespace, as the init of the machine would have.
 *
 * It runs with the rights of the caller, and does nothing but wait: all signals are blocked,
 * of which the kernel therefore delivers none to it.
 */
#include "util/pid_init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "util/spare_pid.h"

#define PARENT_ENDED	SIGTERM		/* from the kernel */

static void give_up(struct pid_shared *s, int err, const char *what)
{
	snprintf(s->message, sizeof(s->message), "the PID namespace for the program: %s: %s", what,
		 strerror(-err));
	s->err = err;
	s->restored = true;
	_exit(0);
}

/*
 * Mounts of the machine appear here, too, if they are made later; what is mounted here does not
 * appear there.
 */
static void mount_proc(struct pid_shared *s)
{
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL))
		give_up(s, -errno, "its mounts cannot be its own");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		give_up(s, -errno, "cannot mount its /proc");
}

/* ---- the restorer ------------------------------------------------------------------ */

static bool is_saved(const struct context *c, pid_t number)
{
	for (size_t i = 0; i < c->nr_processes; i++) {
		if (c->process[i]->pid == number)
			return true;
		for (size_t t = 0; t < c->process[i]->n_thread; t++)
			if (c->process[i]->thread[t]->tid == number)
				return true;
	}
	return false;
}

/* With this PID, if it is none of a saved process and can be had. */
static pid_t fork_as(const struct context *c, pid_t number)
{
	pid_t child = -EEXIST;

	if (number > 1 && !is_saved(c, number))
		child = device_fork(-1, false, number, 0, SIGCHLD);
	return child < 0 ? spare_pid_fork(c) : child;
}

/* The process whose parent and session the restorer stands for. */
static const Kcr__Process *first_process(const struct context *c)
{
	const Kcr__Preamble *p = c->preamble;
	const Kcr__Process *target = context_process(c, p->target);

	if (!target && p->n_root)
		target = context_process(c, p->root[0]);
	return target;
}

static bool has_terminal(void)
{
	int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (terminal >= 0)
		close(terminal);
	return terminal >= 0;
}

/*
 * The restorer has the PID of the program's old parent.  Without a terminal it is in a session
 * with the number of the old one, whose leader it is or which another process makes for it;
 * with one it stays in the caller's session, whose number is 0 here.  Returns in the
 * restorer, and in process 1 with the PID of what it has forked, or -errno.
 */
static pid_t make_restorer(const struct context *c)
{
	const Kcr__Process *first = first_process(c);
	pid_t parent = first ? first->ppid : 0, session = first ? first->sid : 0, child;

	if (has_terminal())
		return fork_as(c, parent);
	child = fork_as(c, session);
	if (child)
		return child;
	setsid();
	if (getpid() == parent || parent <= 1 || is_saved(c, parent))
		return 0;
	child = fork_as(c, parent);
	if (child)
		_exit(child < 0);
	return 0;
}

/* ---- process 1 --------------------------------------------------------------------- */

static bool outside_has_ended(int outside)
{
	struct pollfd end = { .fd = outside, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLRDHUP);
}

/* What the restorer has begun outside of the namespace, such as temporary files, it undoes. */
static void end_with_outside(const struct pid_shared *s)
{
	if (s->committed || !s->restorer)
		_exit(1);
	kill(s->restorer, SIGTERM);
}

/* All that it inherited may be waited for by others, as the end of a pipe. */
static void keep_only(int fd)
{
	if (fd > 0)
		syscall(SYS_close_range, 0, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0u, 0);
	if (chdir("/"))
		_exit(1);
}

/* The program goes on without the one outside, or what is left of it does. */
static void stay(struct pid_shared *s, int outside)
{
	const char ended = PID_SAYS_ENDED;

	s->detached = true;
	prctl(PR_SET_PDEATHSIG, 0);
	if (s->ended)
		send(outside, &ended, 1, MSG_NOSIGNAL);
}

/* Reaps all that have ended.  True: some are left. */
static bool reap(struct pid_shared *s, bool *restorer_ended)
{
	int status;
	pid_t got;

	while ((got = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (got != s->restorer)
			continue;
		*restorer_ended = true;
		if (WIFSIGNALED(status) && !s->ended) {
			s->status = status;
			s->ended = true;
			_exit(1);
		}
	}
	return !got;
}

static void wait_for_all(struct pid_shared *s, int outside, const sigset_t *wanted)
{
	bool restorer_ended = false, staying = false;

	while (reap(s, &restorer_ended)) {
		if (restorer_ended && !s->ended)
			_exit(0);			/* it has failed */
		if ((restorer_ended || s->detached) && !staying) {
			stay(s, outside);
			staying = true;
		}
		if (!staying && outside_has_ended(outside))
			end_with_outside(s);
		sigwaitinfo(wanted, NULL);
	}
	_exit(0);
}

void pid_init_run(struct pid_shared *s, int outside, const struct context *c)
{
	sigset_t all, old, wanted;
	pid_t child;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	prctl(PR_SET_PDEATHSIG, PARENT_ENDED);
	if (outside_has_ended(outside))
		_exit(1);
	mount_proc(s);
	child = make_restorer(c);
	if (!child) {
		s->restorer = getpid();
		sigprocmask(SIG_SETMASK, &old, NULL);
		return;
	}
	if (child < 0)
		give_up(s, child, "cannot make a process there");
	keep_only(outside);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, PARENT_ENDED);
	wait_for_all(s, outside, &wanted);
}
