// SPDX-License-Identifier: GPL-2.0
/* The launcher as a child.  See launcher.h. */
#include "launch/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/srun.h"
#include "proc/spawn.h"
#include "report/report.h"

static sigset_t held, before;
static int own;
static pid_t self;

/* Takes what the process before, in this one's place, has left in the environment. */
static void take_mask(void)
{
	const char *text = getenv(LAUNCHER_MASK_VARIABLE);
	uint64_t mask = text ? strtoull(text, NULL, 16) : 0;

	if (!text)
		return;
	sigemptyset(&before);
	for (int number = 1; number < NSIG; number++)
		if (mask >> (number - 1) & 1)
			sigaddset(&before, number);
	unsetenv(LAUNCHER_MASK_VARIABLE);
}

void launcher_hold_signals(int number_of_own)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	struct sigaction action;

	sigfillset(&held);
	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD && !sigaction(number, NULL, &action) &&
		    action.sa_handler == SIG_IGN)
			sigdelset(&held, number);	/* nohup(1): stays ignored */
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		sigdelset(&held, deadly[i]);
	own = number_of_own;
	if (own)
		sigdelset(&held, own);
	sigprocmask(SIG_BLOCK, &held, &before);
	take_mask();
	signal(SIGCHLD, SIG_DFL);	/* inherited as ignored, the launcher's end would be lost */
}

void launcher_release_signals(void)
{
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool is_kept(int number)
{
	static const int others[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGPIPE, SIGTSTP };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (number == others[i] && number != own)
			return false;
	return number == own || sigismember(&held, number) == 1;
}

void launcher_keep_signals(char mask[LAUNCHER_MASK])
{
	sigset_t kept = before;
	uint64_t was = 0;

	for (int number = 1; number < NSIG; number++) {
		was |= (uint64_t)(sigismember(&before, number) == 1) << (number - 1);
		if (is_kept(number))
			sigaddset(&kept, number);
	}
	snprintf(mask, LAUNCHER_MASK, "%016" PRIx64, was);
	sigprocmask(SIG_SETMASK, &kept, NULL);
}

int launcher_signals(void)
{
	int fd = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* In the child. */
static void prepare(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* at SIGTERM it would wait for nodes that are lost */
	if (getppid() != self)			/* it has ended before */
		_exit(126);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void prepare_without_input(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	prepare();
}

static void prepare_aside(void)
{
	setpgid(0, 0);
	srun_forget_wishes();
	prepare_without_input();
}

static int start(struct launcher *l, char *const *argv, void (*prepare_it)(void))
{
	self = getpid();
	*l = (struct launcher){
		.name = argv[0], .by_slurm = !strcmp(argv[0], "srun"),
		.pid = spawn_program(argv, prepare_it),
	};
	return l->pid < 0 ? report_errno(l->pid, "cannot start %s", argv[0]) : 0;
}

int launcher_start(struct launcher *l, char *const *argv, bool has_input)
{
	return start(l, argv, has_input ? prepare : prepare_without_input);
}

int launcher_start_aside(struct launcher *l, char *const *argv)
{
	return start(l, argv, prepare_aside);
}

bool launcher_check(struct launcher *l)
{
	pid_t found = l->ended ? 0 : waitpid(l->pid, &l->status, WNOHANG | WUNTRACED);

	if (found == l->pid && WIFSTOPPED(l->status))
		l->stopped = true;
	else if (found == l->pid || (found < 0 && errno == ECHILD))
		l->ended = true;
	return l->ended;
}

void launcher_continue(struct launcher *l)
{
	if (l->stopped && !l->ended)
		kill(l->pid, SIGCONT);
	l->stopped = false;
}
