// SPDX-License-Identifier: GPL-2.0
/* Messages of forked processes reach the user through the one that forked them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/report.h"

/* What `act` writes to standard error. */
static const char *heard(void (*act)(void))
{
	static char text[65536];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t length;

	assert_non_null(file);
	assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	act();
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static void in_child(void (*act)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		act();
		_exit(0);
	}
	assert_true(waitpid(pid, &status, 0) == pid && status == 0);
}

static void warn(void)
{
	report_warn("process %d", 7);
}

static void warn_in_child(void)
{
	in_child(warn);
}

static void record_failure(void)
{
	report_fail(-5, "it broke");
}

static void warn_often(void)
{
	for (int i = 0; i < 1000; i++)
		report_warn("line %d of very many that cannot all be kept", i);
}

static void relayed_once(void **state)
{
	(void)state;
	assert_string_equal(heard(warn), "test: warning: process 7\n");
	assert_int_equal(report_share(), 0);
	assert_string_equal(heard(warn), "test: warning: process 7\n");
	assert_string_equal(heard(warn_in_child), "");
	assert_string_equal(heard(warn_in_child), "");
	assert_string_equal(heard(report_relay),
			    "test: warning: process 7\ntest: warning: process 7\n");
	assert_string_equal(heard(report_relay), "");
}

static void failure_shared(void **state)
{
	(void)state;
	in_child(record_failure);
	assert_int_equal(report_error(), -5);
	assert_string_equal(report_message(), "it broke");
	report_clear();
}

static void relayed_by_owner(void **state)
{
	(void)state;
	in_child(warn);
	in_child(report_relay);
	assert_string_equal(heard(report_relay), "test: warning: process 7\n");
}

static void too_many(void **state)
{
	const char *text, *end;

	(void)state;
	in_child(warn_often);
	text = heard(report_relay);
	assert_non_null(strstr(text, "line 99 of very many that cannot all be kept\n"));
	end = strrchr(text, 'k');	/* lines are whole or not there */
	assert_string_equal(end, "kept\n");
}

static void warn_of_name(void)
{
	report_warn("process %d (%s) is left out", 7,
		    "a\n\001done 0 0\n\t\x7f\xc3\xa4\xc2\x9b" "2J\x9b" "2J\xe2\x82\xac\xe4");
}

static void fail_of_name(void)
{
	report_fail(-2, "%s: not found", "a\n\001done 0 0\n");
	report_print(-2);
}

static void one_line(void **state)
{
	(void)state;
	assert_string_equal(heard(warn_of_name),
			    "test: warning: process 7 (a??done 0 0???\xc3\xa4?2J?2J\xe2\x82\xac\xe4)"
			    " is left out\n");
	report_clear();
	assert_string_equal(heard(fail_of_name), "test: a??done 0 0?: not found\n");
	report_clear();
}

static void exit_codes(void **state)
{
	(void)state;
	assert_int_equal(report_exit_code(-22), 22);
	assert_int_equal(report_exit_code(-2354), 50);
	assert_int_equal(report_exit_code(-256), 1);
	assert_int_equal(report_exit_code(-32768), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relayed_once),
		cmocka_unit_test(failure_shared),
		cmocka_unit_test(relayed_by_owner),
		cmocka_unit_test(too_many),
		cmocka_unit_test(one_line),
		cmocka_unit_test(exit_codes),
	};

	report_set_program("test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
