// SPDX-License-Identifier: GPL-2.0
/*
 * Children that have ended but have not been waited for keep how they ended.
 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	pid_t left, killed;
	siginfo_t info;
	int status;

	check_begin(argc, argv);
	left = fork();
	if (!left)
		_exit(77);
	killed = fork();
	if (!killed) {
		raise(SIGUSR1);
		_exit(1);
	}
	NEED(!waitid(P_PID, left, &info, WEXITED | WNOWAIT));
	NEED(!waitid(P_PID, killed, &info, WEXITED | WNOWAIT));
	check_ready();
	check_wait();
	CHECK(kill(left, 0) == 0 && kill(killed, 0) == 0);
	CHECK(waitpid(killed, &status, 0) == killed);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	CHECK(waitpid(left, &status, 0) == left);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
	CHECK(waitpid(-1, &status, 0) < 0 && errno == ECHILD);
	return check_end();
}
