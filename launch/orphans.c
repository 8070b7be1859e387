// SPDX-License-Identifier: GPL-2.0
/* Processes that the daemon has adopted.  See orphans.h. */
#include "launch/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/tree.h"

#define LOOK	(WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD)

struct known {
	bool (*is)(void *argument, pid_t child);
	void *argument;
};

int orphans_adopt(void)
{
	sigset_t child;
	int fd;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal(SIGCHLD, SIG_DFL);	/* inherited as ignored, no end would be told */
	fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	return fd;
}

void orphans_reap(bool (*is_known)(void *argument, pid_t child), void *argument)
{
	siginfo_t ended = { 0 };

	while (!waitid(P_ALL, 0, &ended, LOOK) && ended.si_pid && !is_known(argument, ended.si_pid)) {
		waitpid(ended.si_pid, NULL, WNOHANG);
		ended.si_pid = 0;
	}
}

static int kill_one(void *argument, pid_t child)
{
	const struct known *known = argument;
	siginfo_t info;
	pid_t *all = NULL;
	ssize_t count;

	if (known->is(known->argument, child) || waitid(P_PID, child, &info, LOOK))
		return 0;
	count = proc_tree(child, &all);
	for (ssize_t i = 0; i < count; i++)
		kill(all[i], SIGKILL);
	free(all);
	return 0;
}

void orphans_kill(bool (*is_known)(void *argument, pid_t child), void *argument)
{
	struct known known = { is_known, argument };

	proc_each_child(getpid(), kill_one, &known);
}

bool orphans_any_child(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, LOOK);
}
