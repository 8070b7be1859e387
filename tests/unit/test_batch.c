// SPDX-License-Identifier: GPL-2.0
/* What cr_batch computes: lengths of time, when a save is due; its folder and state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "batch/folder.h"
#include "batch/log.h"
#include "batch/schedule.h"
#include "batch/state.h"
#include "job/optimum.h"
#include "proc/duration.h"
#include "report/report.h"

#define SECOND	1000000000ull

static void lengths_of_time(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} table[] = {
		{ "0", 0 },		{ "90", 90 },		{ "90s", 90 },
		{ "15m", 900 },		{ "12h", 43200 },	{ "2d", 172800 },
		{ "1:30", 90 },		{ "1:00:00", 3600 },	{ "48:00:00", 172800 },
		{ "1-02:03:04", 93784 }, { "1-02:03", 86400 + 123 },
		{ "", -1 },		{ "-5", -1 },		{ "5x", -1 },
		{ "5mm", -1 },		{ "1:60", -1 },		{ "1-25:00:00", -1 },
		{ "1:2:3:4", -1 },	{ "1-", -1 },		{ "UNLIMITED", -1 },
		{ "99999999999999999999", -1 },			{ "40000d", -1 },
		{ " 5", -1 },		{ "1 ", -1 },
	};
	char text[48];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		int64_t got = duration_parse(table[i].text);

		if (got != table[i].seconds)
			fail_msg("\"%s\" is %lld", table[i].text, (long long)got);
	}
	assert_string_equal(duration_format(text, sizeof(text), 59), "59 s");
	assert_string_equal(duration_format(text, sizeof(text), 3599), "59 min 59 s");
	assert_string_equal(duration_format(text, sizeof(text), 90000), "1 d 1 h");
}

static void due_by_interval(void **state)
{
	struct schedule s = { .interval_ns = 10 * SECOND, .end_ns = SCHEDULE_NEVER };
	uint64_t wait;

	(void)state;
	schedule_begin(&s, 100 * SECOND);
	assert_int_equal(schedule_due(&s, 103 * SECOND, &wait), SCHEDULE_NONE);
	assert_int_equal(wait, 7 * SECOND);
	assert_int_equal(schedule_due(&s, 110 * SECOND, &wait), SCHEDULE_SAVE);
	schedule_saved(&s, 112 * SECOND, 2 * SECOND);
	assert_int_equal(schedule_due(&s, 121 * SECOND, &wait), SCHEDULE_NONE);
	assert_int_equal(wait, SECOND);
	s.leave_each = true;
	assert_int_equal(schedule_due(&s, 122 * SECOND, &wait), SCHEDULE_LEAVE);
}

/* A failure is tried again later and later; the end of the allocation comes all the same. */
static void failures(void **state)
{
	static const uint64_t pauses[] = { 5, 10, 20, 40, 60, 60 };
	struct schedule s = { .interval_ns = 1000 * SECOND, .end_ns = 5000 * SECOND };
	uint64_t now = 1000 * SECOND, wait;

	(void)state;
	schedule_begin(&s, 0);
	for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		assert_int_equal(schedule_due(&s, now, &wait), SCHEDULE_SAVE);
		schedule_failed(&s, now, SCHEDULE_SAVE);
		assert_int_equal(schedule_due(&s, now, &wait), SCHEDULE_NONE);
		assert_int_equal(wait, pauses[i] * SECOND);
		now += wait;
	}
	schedule_saved(&s, now, SECOND);
	assert_int_equal(schedule_due(&s, now, &wait), SCHEDULE_NONE);
	assert_int_equal(schedule_due(&s, 5000 * SECOND, &wait), SCHEDULE_LEAVE);
	schedule_failed(&s, 5000 * SECOND, SCHEDULE_LEAVE);
	assert_int_equal(schedule_due(&s, 5005 * SECOND, &wait), SCHEDULE_LEAVE);
}

/* A save that was asked for by a signal, without any interval. */
static void due_by_signal(void **state)
{
	struct schedule s = { .end_ns = SCHEDULE_NEVER };
	uint64_t wait;

	(void)state;
	schedule_begin(&s, 5);
	assert_int_equal(schedule_due(&s, 1000 * SECOND, &wait), SCHEDULE_NONE);
	assert_true(wait == SCHEDULE_NEVER);
	s.save = true;
	assert_int_equal(schedule_due(&s, 1000 * SECOND, &wait), SCHEDULE_SAVE);
	s.leave = true;
	assert_int_equal(schedule_due(&s, 1000 * SECOND, &wait), SCHEDULE_LEAVE);
}

/* The share of time lost to saves and to work that is done again (Daly's model, eq. 20). */
static double lost(double interval, double cost, double mttf)
{
	return mttf * (exp((interval + cost) / mttf) - 1) / interval - 1;
}

static void optimum(void **state)
{
	static const double costs[] = { 1, 30, 300 }, mttf = 86400;

	(void)state;
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		double best = (double)optimum_interval((uint64_t)costs[i] * SECOND,
						       (uint64_t)mttf * SECOND) / SECOND;

		assert_true(lost(best, costs[i], mttf) < lost(best * 1.05, costs[i], mttf));
		assert_true(lost(best, costs[i], mttf) < lost(best / 1.05, costs[i], mttf));
	}
	assert_int_equal(optimum_interval(300 * SECOND, 100 * SECOND), 100 * SECOND);
}

/* The reason of a failure that comes each minute is said once an hour, and when it changes. */
static void repeated_failures(void **state)
{
	struct log_repeated last = {};
	char text[1024];

	(void)state;
	assert_true(log_is_news(&last, "no space", 5 * SECOND));
	assert_false(log_is_news(&last, "no space", 65 * SECOND));
	assert_true(log_is_news(&last, "read-only", 125 * SECOND));
	assert_false(log_is_news(&last, "read-only", 185 * SECOND));
	assert_true(log_is_news(&last, "no space", 245 * SECOND));
	assert_false(log_is_news(&last, "no space", 245 * SECOND + 3599 * SECOND));
	assert_true(log_is_news(&last, "no space", 245 * SECOND + 3600 * SECOND));
	assert_false(log_is_news(&last, "no space", 300 * SECOND + 3600 * SECOND));
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_true(log_is_news(&last, text, 301 * SECOND + 3600 * SECOND));
	assert_false(log_is_news(&last, text, 302 * SECOND + 3600 * SECOND));
}

/* ---- the state --------------------------------------------------------------------- */

#define WORDS	300000

/* A command as long as Linux starts one is found again by the next run, and soon. */
static void long_command(void **state)
{
	char path[] = "/tmp/test_batch.XXXXXX", file[64], **command = calloc(WORDS + 1, sizeof(*command));
	struct state before = {}, after;
	struct folder f;

	(void)state;
	assert_non_null(command);
	for (size_t i = 0; i < WORDS; i++)
		command[i] = i ? "input\x01\"\303\274" : "";
	assert_non_null(mkdtemp(path));
	assert_int_equal(folder_open(&f, path, "job", true), 0);
	assert_int_equal(state_set_command(&before, command), 0);
	assert_int_equal(state_save(&before, &f), 0);
	assert_int_equal(state_load(&after, &f, "job"), 0);
	for (size_t i = 0; i <= WORDS; i++)
		if (command[i] ? strcmp(command[i], after.command[i]) : !!after.command[i])
			fail_msg("word %zu", i);
	state_free(&before);
	state_free(&after);
	free(command);
	folder_close(&f);
	snprintf(file, sizeof(file), "%s/job.json", path);
	unlink(file);
	assert_int_equal(rmdir(path), 0);
}

/* ---- locks ------------------------------------------------------------------------- */

static int flock_errno;		/* what flock(2) says here; 0: what the kernel says */

int flock(int fd, int operation)
{
	if (!flock_errno)
		return (int)syscall(SYS_flock, fd, operation);
	errno = flock_errno;
	return -1;
}

/* A file system without locks is told apart from a lock that another has. */
static void locks(void **state)
{
	char path[] = "/tmp/test_batch.XXXXXX", file[64];
	struct folder f, other;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(folder_open(&f, path, "job", true), 0);
	assert_int_equal(folder_open(&other, path, "job", true), 0);
	flock_errno = ENOSYS;
	assert_int_equal(folder_lock(&f, 0), -ENOLCK);
	assert_false(folder_is_locked(&f, "job"));
	flock_errno = EIO;
	assert_int_equal(folder_lock(&f, 0), -EIO);
	flock_errno = 0;
	assert_int_equal(folder_lock(&f, 0), 0);
	assert_int_equal(folder_lock(&other, 0), -EBUSY);
	report_clear();
	folder_close(&f);
	assert_int_equal(folder_lock(&other, 0), 0);
	folder_close(&other);
	snprintf(file, sizeof(file), "%s/job.lock", path);
	unlink(file);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_of_time), cmocka_unit_test(due_by_interval),
		cmocka_unit_test(failures),	   cmocka_unit_test(due_by_signal),
		cmocka_unit_test(optimum),	   cmocka_unit_test(repeated_failures),
		cmocka_unit_test(locks),	   cmocka_unit_test(long_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
