// SPDX-License-Identifier: GPL-2.0
/*
 * What a restart refuses before it needs the module, and what the tool makes
 * of its arguments: other architectures, moved paths, names of signals.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proc/signal_name.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/resource.h"
#include "restart/restart.h"
#include "util/relocate.h"

#define CR_EBADARCH	2359

static void other_architecture(void **state)
{
	Kcr__Preamble preamble = KCR__PREAMBLE__INIT;
	struct context context = { .preamble = &preamble };
	struct restart_options options = { .restore_pid = true };
	struct restart_result result;

	(void)state;
	preamble.machine = (char *)"s390x";
	assert_int_equal(restart_run(NULL, &context, &options, &result), -CR_EBADARCH);
	assert_non_null(strstr(report_message(), "s390x"));
	report_clear();
}

static void moves(const char *from, const char *to)
{
	const char *path = relocate_path(from);

	assert_string_equal(path, to);
	if (path != from)
		free((char *)path);
}

static void moved_paths(void **state)
{
	(void)state;
	assert_int_equal(relocate_add("/data/run=/scratch"), 0);
	assert_int_equal(relocate_add("/a\\=b=/c\\\\d"), 0);
	assert_int_equal(relocate_add("/data=/late/"), 0);
	moves("/data/run/x", "/scratch/x");
	moves("/data/run", "/scratch");
	moves("/data/runs", "/late/runs");
	moves("/a=b/x", "/c\\d/x");
	moves("/elsewhere", "/elsewhere");
	assert_int_not_equal(relocate_add("no/slash=/x"), 0);
	report_clear();
	assert_int_not_equal(relocate_add("/nothing"), 0);
	report_clear();
	for (int i = 0; i < RELOCATE_MAX - 4; i++)
		assert_int_equal(relocate_add("/x=/y"), 0);
	assert_int_equal(relocate_add("/=/root"), 0);
	moves("/elsewhere", "/root/elsewhere");
	assert_int_not_equal(relocate_add("/x=/y"), 0);
	report_clear();
}

static void names_of_signals(void **state)
{
	(void)state;
	assert_int_equal(signal_number("15"), SIGTERM);
	assert_int_equal(signal_number("TERM"), SIGTERM);
	assert_int_equal(signal_number("SIGKILL"), SIGKILL);
	assert_int_equal(signal_number("RTMIN+3"), SIGRTMIN + 3);
	assert_int_equal(signal_number("SIGRTMAX"), SIGRTMAX);
	assert_int_equal(signal_number("0"), 0);
	assert_int_equal(signal_number("65"), -1);
	assert_int_equal(signal_number("-1"), -1);
	assert_int_equal(signal_number(""), -1);
	assert_int_equal(signal_number("TERMINATE"), -1);
	assert_int_equal(signal_number("RTMIN+99"), -1);
}

struct person { int pid, ppid, pgid, sid; };

#define MOST	5

/* Made-up processes, the first ones of `list`. */
static void make_up(const struct person *people, size_t count, Kcr__Process *list[MOST])
{
	static Kcr__Process process[MOST];
	static Kcr__Mm mm;

	for (size_t i = 0; i < count; i++) {
		kcr__process__init(&process[i]);
		process[i].pid = people[i].pid;
		process[i].ppid = people[i].ppid;
		process[i].pgid = people[i].pgid;
		process[i].sid = people[i].sid;
		process[i].mm = &mm;
		list[i] = &process[i];
	}
}

static void family_of_a_daemon(void **state)
{
	/* A leader; a child of its session; one from before setsid(); one that
	 * the leader's dead child left behind; a dead group leader's member. */
	static const struct person people[] = {
		{ 10, 1, 10, 10 }, { 11, 10, 10, 10 }, { 12, 10, 5, 5 },
		{ 13, 1, 10, 10 }, { 14, 10, 99, 10 },
	};
	Kcr__Process *list[MOST];
	struct relation *all;

	(void)state;
	make_up(people, 5, list);
	assert_int_equal(family_check(list, 5), 0);
	all = family_plan(list, 5);
	assert_non_null(all);
	assert_int_equal(all[0].parent, FAMILY_OUTSIDE);
	assert_int_equal(all[0].session, 0);
	assert_false(all[0].hosted);
	assert_int_equal(all[1].parent, 0);
	assert_false(all[1].early);
	assert_true(all[2].early);
	assert_int_equal(all[2].session, FAMILY_OUTSIDE);
	assert_int_equal(all[2].group_number, 0);
	assert_true(all[3].hosted);
	assert_int_equal(all[4].group, FAMILY_OUTSIDE);
	assert_int_equal(all[4].group_number, 99);
	free(all);
}

static void group_without_its_leader(void **state)
{
	/* One has left the group that it led for that of another; its child is still there. */
	static const struct person people[] = {
		{ 10, 1, 10, 10 }, { 11, 10, 12, 10 }, { 12, 10, 12, 10 }, { 13, 11, 11, 10 },
	};
	Kcr__Process *list[MOST];
	struct relation *all;

	(void)state;
	make_up(people, 4, list);
	assert_int_equal(family_check(list, 4), 0);
	all = family_plan(list, 4);
	assert_non_null(all);
	assert_int_equal(all[3].group, 1);
	assert_int_equal(all[3].group_number, 0);
	assert_int_equal(all[1].group, 2);
	assert_true(all[1].moves);
	assert_false(all[0].moves || all[2].moves || all[3].moves);
	free(all);
}

static void impossible(Kcr__Process *const *list, size_t count, const char *why)
{
	assert_int_equal(family_check(list, count), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), why));
	report_clear();
}

static void family_that_cannot_be_made(void **state)
{
	/* An adopted child of a session whose leader is another child; one in a session that is
	 * neither its parent's nor saved. */
	static const struct person adopted[] = {
		{ 10, 1, 10, 10 }, { 11, 10, 11, 11 }, { 12, 10, 11, 11 },
	}, strange[] = {
		{ 10, 1, 10, 10 }, { 11, 10, 11, 11 }, { 12, 11, 5, 5 },
	}, swapped[] = {
		{ 10, 1, 10, 10 }, { 11, 10, 12, 10 }, { 12, 10, 11, 10 },
	};
	Kcr__Process *list[MOST];

	(void)state;
	make_up(adopted, 3, list);
	impossible(list, 3, "process 12 cannot be made a child of process 10");
	list[0]->subreaper = true;
	assert_int_equal(family_check(list, 3), 0);
	list[1]->subreaper = true;
	impossible(list, 3, "process 12 cannot be made a child of process 10");
	make_up(strange, 3, list);
	impossible(list, 3, "process 12 cannot be made a child of process 11");
	make_up(swapped, 3, list);
	impossible(list, 3, "processes 11 and 12");
}

static char warning[256];

static void note_warning(const char *text)
{
	snprintf(warning, sizeof(warning), "%s", text);
}

/* Those of POSIX timers that a restart reaches by counting. */
static void high_numbers(void **state)
{
	static const struct person people[] = { { 10, 1, 10, 10 } };
	Kcr__Timer timer = KCR__TIMER__INIT, *timers = &timer;
	Kcr__Process *list[MOST];

	(void)state;
	make_up(people, 1, list);
	list[0]->n_timer = 1;
	list[0]->timer = &timers;
	timer.kind = KCR_TIMER_POSIX;
	timer.id = 10000000;
	report_on_warning(note_warning);
	assert_int_equal(timers_check(list, 1), 0);
	assert_string_equal(warning, "");
	timer.id++;
	assert_int_equal(timers_check(list, 1), 0);
	assert_non_null(strstr(warning, "process 10 has a POSIX timer with the number 10000001"));
	report_on_warning(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_architecture),
		cmocka_unit_test(moved_paths),
		cmocka_unit_test(names_of_signals),
		cmocka_unit_test(family_of_a_daemon),
		cmocka_unit_test(group_without_its_leader),
		cmocka_unit_test(family_that_cannot_be_made),
		cmocka_unit_test(high_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
