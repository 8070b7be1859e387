// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes, not threads, that share their memory (CLONE_VM).
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

static volatile int there, answer;

static int child(void *argument)
{
	(void)argument;
	there = 1;
	while (!answer)
		usleep(10000);
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
