// SPDX-License-Identifier: GPL-2.0
/*
 * Job control on behalf of the restarted program.  If we are in the foreground
 * we pass the terminal on to the program's group, as the shell did to
 * us, and take it back when the program stops or ends.  Called by util/follow.c.
 */
#include "util/foreground.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int terminal = -1;	/* open while it is shared */
static pid_t leader;		/* of the program: our child, not reaped before foreground_end() */
static pid_t given_to;		/* the group that we gave it to last; 0: none */

bool foreground_is_shared(void)
{
	return terminal >= 0;
}

/* Blocks the SIGTTOU that a background process would get for this. */
static bool set_foreground(pid_t pgrp)
{
	sigset_t brake, old;
	bool done;

	sigemptyset(&brake);
	sigaddset(&brake, SIGTTOU);
	sigprocmask(SIG_BLOCK, &brake, &old);
	done = !tcsetpgrp(terminal, pgrp);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return done;
}

static bool give(pid_t pgrp)
{
	if (tcgetpgrp(terminal) != getpgrp() || !set_foreground(pgrp))
		return false;
	given_to = pgrp;
	return true;
}

/* Only from the group that we gave it to: the shell may have moved us to the background. */
static bool take(void)
{
	if (given_to && tcgetpgrp(terminal) == given_to)
		set_foreground(getpgrp());
	given_to = 0;
	return tcgetpgrp(terminal) == getpgrp();
}

/* Are we in an asynchronous list of a shell without job control, which keeps its terminal? */
static bool in_background_of_script(void)
{
	struct sigaction interrupt;

	return !sigaction(SIGINT, NULL, &interrupt) && interrupt.sa_handler == SIG_IGN;
}

/* Asked for each time: when the last process of a group has left, others get its number. */
static pid_t program_group(void)
{
	return getpgid(leader);
}

static void go_on(void)
{
	pid_t group = program_group();

	if (group > 0)
		kill(-group, SIGCONT);
}

void foreground_share(pid_t child, pid_t holder)
{
	pid_t group;

	leader = child;
	group = program_group();
	if (group <= 0 || group == getpgrp() || getsid(leader) != getsid(0) ||
	    in_background_of_script())
		return;
	terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal >= 0 && holder > 0)
		give(holder);
}

/*
 * Stops the whole group, as the terminal does: the shell waits for each command of a
 * pipeline.  False: it has no effect, as there is no shell to continue us.
 */
static bool stop_own_group(int signal_number)
{
	const struct timespec now = { 0, 0 };
	sigset_t stop, old, go_on;

	sigemptyset(&stop);
	sigaddset(&stop, signal_number);
	sigemptyset(&go_on);
	sigaddset(&go_on, SIGCONT);
	sigprocmask(SIG_UNBLOCK, &stop, &old);
	kill(0, signal_number);
	sigprocmask(SIG_SETMASK, &old, NULL);
	/* SIGCONT is pending if and only if we were stopped: a stop discards earlier ones. */
	return sigtimedwait(&go_on, NULL, &now) == SIGCONT;
}

void foreground_stop(int signal_number)
{
	bool in_front;

	/* The shell may have moved us to the foreground, which sends no signal. */
	if ((signal_number == SIGTTIN || signal_number == SIGTTOU) && give(program_group())) {
		go_on();
		return;
	}
	in_front = take();
	if (signal_number == SIGSTOP) {
		/* SIGSTOP was sent by another process: ignore it unless the user waits for us. */
		if (!in_front || !stop_own_group(SIGTSTP))
			return;
	} else if (!stop_own_group(signal_number) && !in_front) {
		return;
	}
	give(program_group());
	go_on();
}

void foreground_end(void)
{
	if (terminal < 0)
		return;
	take();
	close(terminal);
	terminal = -1;
}
