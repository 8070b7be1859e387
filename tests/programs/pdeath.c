// SPDX-License-Identifier: GPL-2.0
/*
 * The parent-death signal still reaches a child whose parent dies.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	int up[2], status;
	pid_t middle;
	char byte;

	check_begin(argc, argv);
	NEED(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	NEED(!pipe(up));
	middle = fork();
	if (!middle) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
			NEED(write(up[1], "", 1) == 1);
			for (;;)
				pause();
		}
		for (;;)
			pause();
	}
	NEED(read(up[0], &byte, 1) == 1);
	check_ready();
	check_wait();
	CHECK(kill(middle, SIGKILL) == 0);
	CHECK(waitpid(middle, &status, 0) == middle);
	CHECK(wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	return check_end();
}
