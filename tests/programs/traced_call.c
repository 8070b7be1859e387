// SPDX-License-Identifier: GPL-2.0
/*
 * Debugs a child, which it holds at the entry of write(2) until there is the file GO;
 * the child's number is in the file `child`.  The call must then succeed.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

static int be_child(void)
{
	int fd = open("written", O_WRONLY | O_CREAT | O_EXCL, 0600);

	NEED(fd >= 0 && !ptrace(PTRACE_TRACEME, 0, 0, 0) && !raise(SIGSTOP));
	CHECK(write(fd, "text", 4) == 4);
	return check_end();
}

int main(int argc, char **argv)
{
	FILE *file;
	pid_t child;
	int status;
	long call;

	check_begin(argc, argv);
	child = fork();
	if (!child)
		_exit(be_child());
	NEED(child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	do {
		NEED(!ptrace(PTRACE_SYSCALL, child, 0, 0));
		NEED(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		call = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.orig_rax), 0);
	} while (call != SYS_write);
	file = fopen("child", "w");
	NEED(file && fprintf(file, "%d\n", child) > 0 && !fclose(file));
	check_ready();
	check_wait();
	CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
	CHECK(waitpid(child, &status, 0) == child && !status);
	return check_end();
}
