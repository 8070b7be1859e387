// SPDX-License-Identifier: GPL-2.0
/* The launcher as a child.  See launcher.h. */
#include "launch/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "proc/spawn.h"
#include "report/report.h"

static sigset_t held, before;

void launcher_hold_signals(int own)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	sigfillset(&held);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		sigdelset(&held, deadly[i]);
	if (own)
		sigdelset(&held, own);
	sigprocmask(SIG_BLOCK, &held, &before);
	signal(SIGCHLD, SIG_DFL);	/* inherited as ignored, the launcher's end would be lost */
}

/* In the child. */
static void prepare(void)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* What the terminal sends goes to the whole process group, the launcher included. */
static bool is_from_terminal(const siginfo_t *info)
{
	return info->si_code == SI_KERNEL;
}

/* It has stopped: so does this process, until both are continued. */
static void stop_too(pid_t child)
{
	raise(SIGSTOP);
	kill(child, SIGCONT);
}

/* True: it has ended, *status says how. */
static bool has_ended(pid_t child, int *status)
{
	pid_t found = waitpid(child, status, WNOHANG | WUNTRACED);

	if (found == child && WIFSTOPPED(*status)) {
		stop_too(child);
		return false;
	}
	return found == child || (found < 0 && errno != EINTR);
}

int launcher_run(char *const *argv)
{
	pid_t child = spawn_program(argv, prepare);
	int status = 0;

	if (child < 0)
		return report_errno(child, "cannot start %s", argv[0]);
	while (!has_ended(child, &status)) {
		siginfo_t info;
		int number = sigwaitinfo(&held, &info);

		if (number > 0 && number != SIGCHLD && !is_from_terminal(&info))
			kill(child, number);
	}
	return status;
}
