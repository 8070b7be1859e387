// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes, not threads, that share their memory (CLONE_VM), but not the working
 * folder and the file mode mask.
 */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

static volatile int there, answer;

static int child(void *argument)
{
	char now[PATH_MAX];

	(void)argument;
	if (chdir("/usr"))
		return 8;
	umask(0123);
	there = 1;
	while (!answer)
		usleep(10000);
	if (!getcwd(now, sizeof(now)) || strcmp(now, "/usr") || umask(0) != 0123)
		return 9;
	return answer == 5 ? 6 : 7;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	int status;
	pid_t pid;

	check_begin(argc, argv);
	pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	NEED(pid > 0);
	while (!there)
		check_sleep_ms(1);
	check_ready();
	check_wait();
	answer = 5;
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 6);
	return check_end();
}
