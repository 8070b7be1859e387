// SPDX-License-Identifier: GPL-2.0
/*
 * Children that have ended, and told it by another signal than SIGCHLD or by
 * none: they can be waited for, and the signal does not come once more.  With
 * the argument "root" the program, which ends with status 5 then and has left its
 * number in the file `root`, is such a child itself.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t nr_signals;

static void count(int signal_number)
{
	(void)signal_number;
	nr_signals++;
}

static pid_t make(int exit_signal, int code)
{
	pid_t pid = (pid_t)syscall(SYS_clone, exit_signal, 0, 0, 0, 0);
	siginfo_t info;

	NEED(pid >= 0);
	if (!pid)
		_exit(code);
	NEED(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL));
	return pid;
}

static bool ended_with(pid_t pid, int code)
{
	int status;

	return waitpid(pid, &status, __WALL) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == code;
}

/* In the child; the parent does nothing but wait for it. */
static void become_child(void)
{
	pid_t pid;

	signal(SIGUSR1, SIG_IGN);
	pid = (pid_t)syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
	NEED(pid >= 0);
	if (pid) {
		NEED(waitpid(pid, NULL, __WALL) == pid);
		_exit(0);
	}
}

static void tell_number(const char *path)
{
	FILE *file = fopen(path, "w");

	NEED(file && fprintf(file, "%d\n", getpid()) > 0 && !fclose(file));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	pid_t loud, silent;

	check_begin(argc, argv);
	if (argc > 3) {
		become_child();
		tell_number(argv[3]);
	}
	NEED(!sigaction(SIGUSR1, &action, NULL));
	loud = make(SIGUSR1, 77);
	silent = make(0, 78);
	NEED(nr_signals == 1);
	check_ready();
	check_wait();
	CHECK(nr_signals == 1);
	CHECK(ended_with(loud, 77));
	CHECK(ended_with(silent, 78));
	return check_end() ?: argc > 3 ? 5 : 0;
}
