// SPDX-License-Identifier: GPL-2.0
/*
 * The address that set_tid_address(2) gave: the kernel clears it and wakes a waiter
 * when the thread ends, here of a process that shares memory with its parent.
 */
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

static volatile int word = 1;

static int child(void *argument)
{
	(void)argument;
	syscall(SYS_set_tid_address, &word);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	check_wait();
	return 0;
}

int main(int argc, char **argv)
{
	char *stack;
	pid_t pid;

	check_begin(argc, argv);
	stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(stack != MAP_FAILED);
	pid = clone(child, stack + (1 << 18), CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
	NEED(pid > 0);
	usleep(200000);
	check_ready();
	while (word)
		CHECK(!syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0) || errno == EAGAIN);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return check_end();
}
