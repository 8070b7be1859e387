// SPDX-License-Identifier: GPL-2.0
/*
 * `cr_not_allowed ERRNO`: what libcr says where the module may not be used: cr_init() and
 * a request for a child both fail so, and the program goes on.
 */
#include <libcr.h>

#include <signal.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

int main(int argc, char **argv)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	int expected;
	pid_t pid;

	NEED(argc == 2);
	expected = atoi(argv[1]);
	CHECK(cr_init() < 0 && errno == expected);
	CHECK(cr_register_callback(NULL, NULL, CR_THREAD_CONTEXT) < 0);

	pid = fork();
	if (!pid)
		for (;;)
			pause();
	cr_initialize_checkpoint_args_t(&args);
	args.cr_target = pid;
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = open("not_allowed.image", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	NEED(pid > 0 && args.cr_fd >= 0);
	CHECK(cr_request_checkpoint(&args, &handle) < 0 && errno == expected);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return check_end();
}
