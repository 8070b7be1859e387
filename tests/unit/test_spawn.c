// SPDX-License-Identifier: GPL-2.0
/*
 * libcr starts a tool for a program: if the program is killed before it lets the tool begin,
 * nothing of it stays behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "libcr/spawn.c"		/* it is not in a room's library */

/* Starts a tool, tells its PID, and is killed. */
static void program(int out)
{
	static const char *const none[] = { NULL };
	int pair[2];
	pid_t tool;

	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) &&
	    !cri_spawn("true", none, -1, pair[1], NULL) &&
	    recv(pair[0], &tool, sizeof(tool), MSG_WAITALL) == sizeof(tool) &&
	    write(out, &tool, sizeof(tool)) == sizeof(tool))
		raise(SIGKILL);
	_exit(1);
}

static bool ends_in_time(pid_t pid)
{
	const struct timespec nap = { .tv_nsec = 20000000 };

	for (int i = 0; i < 1000; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		nanosleep(&nap, NULL);
	}
	kill(pid, SIGKILL);
	return false;
}

static void killed_before_it_begins(void **state)
{
	int out[2], status;
	pid_t pid, tool;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (!pid)
		program(out[1]);
	assert_true(pid > 0);
	assert_int_equal(read(out[0], &tool, sizeof(tool)), sizeof(tool));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_true(ends_in_time(tool));
	close(out[0]);
	close(out[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(killed_before_it_begins) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
