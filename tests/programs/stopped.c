// SPDX-License-Identifier: GPL-2.0
/*
 * A child that SIGSTOP has stopped stays stopped; SIGCONT lets it run on, and its
 * parent is told of that once.
 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static char state_of(pid_t pid)
{
	char path[64], text[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	end = strrchr(check_slurp(path, text, sizeof(text)), ')');
	return end ? end[2] : '?';
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	check_begin(argc, argv);
	child = fork();
	if (!child) {
		raise(SIGSTOP);
		_exit(9);
	}
	NEED(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	check_ready();
	check_wait();
	for (int i = 0; i < 100 && state_of(child) != 'T'; i++)
		check_sleep_ms(10);	/* after a restart it stops when it first runs */
	CHECK(state_of(child) == 'T');
	CHECK(waitpid(child, &status, WUNTRACED | WNOHANG | WCONTINUED) == 0);
	CHECK(kill(child, SIGCONT) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	return check_end();
}
