// SPDX-License-Identifier: GPL-2.0
/*
 * Debugs a child, which it holds inside of a system call until there is the file GO: at the
 * entry of write(2), in fork(2) or in _exit(2), or as a signal kills it.  Its registers say that
 * the call has a result.  The child's number is in the file `child`.  What it does must then
 * succeed.  With `signal` it holds it where it has got one, which is no call.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

static void be_child(void)
{
	NEED(!ptrace(PTRACE_TRACEME, 0, 0, 0) && !raise(SIGSTOP));
}

static void write_text(void)
{
	int fd = open("written", O_WRONLY | O_CREAT | O_EXCL, 0600);

	be_child();
	CHECK(write(fd, "text", 4) == 4);
	_exit(check_end());
}

static void make_child(void)
{
	int status;
	pid_t pid;

	be_child();
	pid = fork();
	if (!pid)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	_exit(check_end());
}

static void end(void)
{
	be_child();
	_exit(0);
}

static void die(void)
{
	be_child();
	raise(SIGTERM);
	_exit(1);
}

static void ignore(void)
{
	signal(SIGUSR1, SIG_IGN);
	be_child();
	raise(SIGUSR1);
	_exit(check_end());
}

static pid_t child;
static int status;

static void go_on_to(long request, int wanted)
{
	do {
		int signal = status >> 8 == SIGTERM ? SIGTERM : 0;

		NEED(!ptrace(request, child, 0, signal));
		NEED(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	} while (status >> 8 != wanted);
}

static void stop_at_write(void)
{
	do {
		go_on_to(PTRACE_SYSCALL, SIGTRAP);
	} while (ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.orig_rax), 0) !=
		 SYS_write);
}

static void stop_at_fork(void)
{
	NEED(!ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEFORK));
	go_on_to(PTRACE_CONT, SIGTRAP | PTRACE_EVENT_FORK << 8);
}

static void stop_at_exit(void)
{
	NEED(!ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT));
	go_on_to(PTRACE_CONT, SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

static void stop_at_signal(void)
{
	go_on_to(PTRACE_SYSCALL, SIGUSR1);
}

static void let_child_of_child_go(void)
{
	unsigned long other;

	NEED(!ptrace(PTRACE_GETEVENTMSG, child, 0, &other));
	NEED(waitpid(other, NULL, __WALL) == (pid_t)other);
	NEED(!ptrace(PTRACE_DETACH, other, 0, 0));
}

static const struct mode {
	const char *name;
	void (*run)(void);
	void (*stop)(void);
	int status;
} modes[] = {
	{ "write", write_text, stop_at_write, 0 },
	{ "fork", make_child, stop_at_fork, 0 },
	{ "exit", end, stop_at_exit, 0 },
	{ "killed", die, stop_at_exit, SIGTERM },
	{ "signal", ignore, stop_at_signal, 0 },
};

static const struct mode *mode_of(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	check_no_setup(__FILE__, __LINE__, name);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct mode *mode;
	FILE *file;

	check_begin(argc, argv);
	mode = mode_of(argc > 3 ? argv[3] : "");
	child = fork();
	if (!child)
		mode->run();
	NEED(child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	status = 0;
	mode->stop();
	if (mode->run != ignore)
		NEED(!ptrace(PTRACE_POKEUSER, child, offsetof(struct user, regs.rax), 0));
	if (mode->run == make_child)
		let_child_of_child_go();
	file = fopen("child", "w");
	NEED(file && fprintf(file, "%d\n", child) > 0 && !fclose(file));
	check_ready();
	check_wait();
	do {
		CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
		NEED(waitpid(child, &status, 0) == child);
	} while (WIFSTOPPED(status));
	CHECK(status == mode->status);
	return check_end();
}
