/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Never calls cr_init(): that libcr knows its first thread, before and after a
 * restart, and the child that it forks, is libcr_run.so.0's doing.
 */
#include <libcr.h>

#include <sys/wait.h>

#include "tests/programs/check.h"

static bool is_client(void)
{
	return cr_status() == CR_STATE_IDLE;
}

static void check_section(void)
{
	CHECK(cr_enter_cs(cr_init()) == 0);
	CHECK(cr_leave_cs(cr_init()) == 0);
}

static void check_child(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(is_client() ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	int err = errno;

	check_begin(argc, argv);
	NEED(!err);
	NEED(is_client());
	check_section();
	check_child();
	check_ready();
	check_wait();
	CHECK(is_client());
	check_section();
	check_child();
	return check_end();
}
