// SPDX-License-Identifier: GPL-2.0
/*
 * Processes whose first thread ends before the other one come and go all the
 * time: a checkpoint meets them in every state.  Each must end as it said.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define CHILDREN	3

static void doze(long us)
{
	struct timespec left = { 0, us * 1000 };

	nanosleep(&left, NULL);
}

static void *outlive(void *argument)
{
	doze((uintptr_t)argument);
	_exit(3);
}

static void make(unsigned int n)
{
	pthread_t thread;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid)
		return;
	if (pthread_create(&thread, NULL, outlive, (void *)(uintptr_t)(5000 + n * 7919 % 9000)))
		_exit(2);
	doze(n * 5077 % 9000);
	for (;;)
		syscall(SYS_exit, 4);
}

static void reap(void)
{
	int status;

	CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

int main(int argc, char **argv)
{
	unsigned int n = 0;

	check_begin(argc, argv);
	while (n < CHILDREN)
		make(n++);
	check_ready();
	while (!check_gone()) {
		reap();
		make(n++);
	}
	for (int i = 0; i < CHILDREN; i++)
		reap();
	return check_end();
}
