// SPDX-License-Identifier: GPL-2.0
/* What is said where the device or a process is refused: the reason, and the -errno. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <cmocka.h>

#include "device/refused.h"
#include "proc/namespace.h"
#include "report/report.h"

static void assert_says(int err, int expected, const char *text)
{
	assert_int_equal(err, expected);
	assert_int_equal(report_error(), expected);
	assert_non_null(strstr(report_message(), text));
	report_clear();
}

static void the_device(void **state)
{
	(void)state;
	assert_says(refused_open(-ENOENT), -ENOSYS, "modprobe kcr");
	assert_says(refused_open(-ENXIO), -ENOSYS, "modprobe kcr");
	assert_says(refused_open(-EACCES), -EACCES, "/dev/kcr");
	assert_says(refused_open(-EPERM), -EPERM, "ask the administrator");
	assert_says(refused_open(-EDQUOT), -EDQUOT, "parameter max_jobs of the module kcr");
	assert_says(refused_open(-EMFILE), -EMFILE, "Too many open files");
}

static void a_process(void **state)
{
	(void)state;
	assert_says(refused_process(4711, -EDQUOT), -EDQUOT, "process 4711: ");
	assert_says(refused_process(4711, -EDQUOT), -EDQUOT, "parameter max_processes");
	assert_says(refused_process(0, -EDQUOT), -EDQUOT, "parameter max_processes");
	refused_process(0, -EDQUOT);
	assert_null(strstr(report_message(), "process 0"));
	report_clear();
}

/* In a child, which keeps the filter. */
static void under_a_filter(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(1);
	_exit(refused_clone(4711, 4711) == -EPERM && strstr(report_message(), "seccomp") ? 0 : 1);
}

static void a_clone(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	/* These tests may run in a container, which has one. */
	if (!prctl(PR_GET_SECCOMP)) {
		assert_says(refused_clone(4711, 4711), -EPERM, "--no-restore-pid");
		assert_says(refused_clone(299, 299), -EPERM, namespace_is_first("pid") ?
			    "ID 299 is one of those" : "this user namespace");
		assert_says(refused_clone(299, 0), -EPERM, "may not create processes");
	}
	pid = fork();
	if (!pid)
		under_a_filter();
	assert_true(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device),
		cmocka_unit_test(a_process),
		cmocka_unit_test(a_clone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
