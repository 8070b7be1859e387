// SPDX-License-Identifier: GPL-2.0
/*
 * Passes signals on and takes over the exit status.  All signals are received by
 * sigwaitinfo(2), so nothing runs in a handler and none is missed between two steps.
 */
#include "follow.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/foreground.h"

static sigset_t old_mask;
static sigset_t followed;

void follow_begin(void)
{
	static const int own[] = {	/* our own faults, and the terminal's stop signals */
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU,
	};
	static const int giving_up[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP };
	sigset_t early;

	sigfillset(&followed);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&followed, own[i]);
	early = followed;
	for (size_t i = 0; i < sizeof(giving_up) / sizeof(*giving_up); i++)
		sigdelset(&early, giving_up[i]);
	sigprocmask(SIG_BLOCK, &early, &old_mask);
	/* Inherited as ignored, children would neither be reported nor waited for. */
	signal(SIGCHLD, SIG_DFL);
}

void follow_commit(void)
{
	sigprocmask(SIG_BLOCK, &followed, NULL);
}

void follow_fail(void)
{
	const struct timespec now = { 0, 0 };

	foreground_end();
	while (sigtimedwait(&followed, NULL, &now) > 0)
		;
	follow_end();
}

void follow_end(void)
{
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/*
 * The terminal signals the whole foreground group: a program in our own group
 * has got the signal already.
 */
static bool had_its_own(const siginfo_t *info, pid_t leader)
{
	return info->si_code == SI_KERNEL && getpgid(leader) == getpgrp();
}

/* Of a pipe or file that we write to ourselves: who writes has the error, too. */
static bool is_our_own(const siginfo_t *info)
{
	return (info->si_signo == SIGPIPE || info->si_signo == SIGXFSZ) && info->si_pid == getpid();
}

void follow_pass_on(const siginfo_t *info, pid_t leader)
{
	if (is_our_own(info))
		return;
	if (!had_its_own(info, leader)) {
		if (info->si_code == SI_QUEUE)
			sigqueue(leader, info->si_signo, info->si_value);
		else
			kill(leader, info->si_signo);
	}
	if (info->si_signo == SIGTSTP) {
		if (foreground_is_shared())
			foreground_stop(SIGTSTP);
		else
			raise(SIGSTOP);
	}
}

bool follow_wait(siginfo_t *info, uint64_t timeout_ns)
{
	const struct timespec limit = { (time_t)(timeout_ns / 1000000000),
					(long)(timeout_ns % 1000000000) };

	return sigtimedwait(&followed, info, timeout_ns == UINT64_MAX ? NULL : &limit) > 0;
}

/*
 * Reaps our other children: further roots of the tree, and orphans from
 * before the programs ran.  Returns the leader if it has ended meanwhile.
 */
static pid_t reap_others(pid_t leader, int *status)
{
	pid_t got;

	do
		got = waitpid(-1, status, WNOHANG | __WALL);
	while (got > 0 && got != leader);
	return got;
}

static int follow(pid_t leader)
{
	int stops = foreground_is_shared() ? WUNTRACED : 0;

	for (;;) {
		siginfo_t info;
		int status;
		pid_t got = waitpid(leader, &status, WNOHANG | stops);

		if (got == leader && WIFSTOPPED(status)) {
			foreground_stop(WSTOPSIG(status));
			continue;
		}
		if (got == leader)
			return status;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (reap_others(leader, &status) == leader)
			return status;
		if (sigwaitinfo(&followed, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD)
			follow_pass_on(&info, leader);
	}
}

int follow_leader(pid_t leader)
{
	int status = follow(leader);

	foreground_end();
	return status;
}

void follow_mimic(int status)
{
	if (WIFSIGNALED(status)) {
		int signal_number = WTERMSIG(status);
		struct rlimit no_core = { 0, 0 };
		sigset_t one;

		/* The program has dumped core; ours would only overwrite that. */
		setrlimit(RLIMIT_CORE, &no_core);
		signal(signal_number, SIG_DFL);
		sigemptyset(&one);
		sigaddset(&one, signal_number);
		sigprocmask(SIG_UNBLOCK, &one, NULL);
		raise(signal_number);
		exit(128 + signal_number);
	}
	exit(WEXITSTATUS(status));
}
