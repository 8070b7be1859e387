// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes, not threads, that share their memory (CLONE_VM), but not the working
 * folder and the file mode mask.  With an argument the second one is in a `session` or `group`
 * of its own, or has a `child`, or is `uncle` to it: a child of a third one.
 */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static volatile int there, answer;

/* A process that does nothing, and ends with its parent's. */
static void idle(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static int child(void *argument)
{
	const char *what = argument;
	char now[PATH_MAX];

	if (chdir("/usr"))
		return 8;
	if (!strcmp(what, "session"))
		setsid();
	else if (!strcmp(what, "group"))
		setpgid(0, 0);
	else if (!strcmp(what, "child"))
		idle();
	umask(0123);
	there = 1;
	while (!answer)
		usleep(10000);
	if (!getcwd(now, sizeof(now)) || strcmp(now, "/usr") || umask(0) != 0123)
		return 9;
	return answer == 5 ? 6 : 7;
}

static char stack[2][1 << 16];

static int uncle(void *argument)
{
	return clone(child, stack[1] + sizeof(stack[1]), CLONE_VM | SIGCHLD, argument) < 0 ||
	       wait(NULL) < 0;
}

int main(int argc, char **argv)
{
	char *what = argc > 3 ? argv[3] : "";
	bool is_uncle = !strcmp(what, "uncle");
	int status;
	pid_t pid;

	check_begin(argc, argv);
	pid = clone(is_uncle ? uncle : child, stack[0] + sizeof(stack[0]), CLONE_VM | SIGCHLD, what);
	NEED(pid > 0);
	while (!there)
		check_sleep_ms(1);
	check_ready();
	check_wait();
	answer = 5;
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == (is_uncle ? 0 : 6));
	return check_end();
}
