// SPDX-License-Identifier: GPL-2.0
/*
 * Children of a process that has not forked them, in a session that is not its own:
 *	sibling		of their creator (CLONE_PARENT)
 *	adopted		when their parent died, by who adopts none any more, or still does
 *	still
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

static int up[2];

/* A process that is one of the session, and ends with the pipe. */
static void stay(void)
{
	char byte;

	NEED(write(up[1], "r", 1) == 1);
	close(up[1]);
	while (!check_gone())
		usleep(10000);
	_exit(read(up[0], &byte, 1) < 0);
}

static void in_session(void)
{
	NEED(setsid() > 0);
	if (!strcmp(check_argument, "sibling")) {
		if (!syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0))
			stay();
	} else if (!fork()) {
		pid_t parent = getpid();

		if (!fork()) {
			while (getppid() == parent)
				usleep(1000);
			stay();
		}
		_exit(0);
	} else {
		NEED(wait(NULL) > 0);
	}
	stay();
}

static void family(void)
{
	char two[2];
	pid_t child;

	NEED(!pipe(up));
	NEED(!strcmp(check_argument, "sibling") || !prctl(PR_SET_CHILD_SUBREAPER, 1));
	child = fork();
	if (!child)
		in_session();
	NEED(read(up[0], two, 1) == 1 && read(up[0], two + 1, 1) == 1);
	if (!strcmp(check_argument, "adopted"))
		NEED(!prctl(PR_SET_CHILD_SUBREAPER, 0));
	checkpoint_here();
	close(up[1]);
	for (int i = 0; i < 2; i++)
		CHECK(wait(NULL) > 0);
	CHECK(wait(NULL) < 0 && errno == ECHILD);
}

int main(int argc, char **argv)
{
	static const struct check kinds[] = { { "family", family }, {} };

	return check_one(argc, argv, kinds);
}
