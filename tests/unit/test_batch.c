// SPDX-License-Identifier: GPL-2.0
/*
 * What cr_batch computes: lengths of time, when a save is due, names of jobs; its folder and
 * state; and what it asks of schedulers, whose commands are simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
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
#include "batch/scheduler.h"
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

static void forget_schedulers(void)
{
	static const char *const variables[] = {
		"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "PBS_JOBID",
		"PBS_ARRAY_INDEX", "JOB_ID", "SGE_TASK_ID", "LSB_JOBID", "LSB_JOBINDEX",
		"SLURM_STEP_ID", "SLURM_PROCID", "SGE_CKPT_ENV", "SGE_CKPT_DIR", "QUEUE", "HOSTNAME",
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
}

static void check_name(const char *scheduler, const char *name)
{
	const struct scheduler *s = scheduler_detect();
	char got[FOLDER_NAME_MAX + 1];

	assert_string_equal(s ? s->name : "none", scheduler);
	scheduler_job_name(s, got, sizeof(got));
	assert_string_equal(got, name);
	assert_true(folder_name_valid(got));
	forget_schedulers();
}

static void names_of_jobs(void **state)
{
	(void)state;
	forget_schedulers();
	check_name("none", "job");
	setenv("SLURM_JOB_ID", "4713", 1);
	check_name("slurm", "4713");
	setenv("SLURM_JOB_ID", "4713", 1);
	setenv("SLURM_ARRAY_JOB_ID", "4711", 1);
	setenv("SLURM_ARRAY_TASK_ID", "2", 1);
	check_name("slurm", "4711_2");
	/* The batch script is the first task of no step. */
	setenv("SLURM_JOB_ID", "4713", 1);
	setenv("SLURM_PROCID", "0", 1);
	check_name("slurm", "4713");
	setenv("SLURM_JOB_ID", "4713", 1);
	setenv("SLURM_STEP_ID", "1", 1);
	setenv("SLURM_PROCID", "15", 1);
	check_name("slurm", "4713-step1-task15");
	setenv("PBS_JOBID", "17[3].server.site", 1);
	setenv("PBS_ARRAY_INDEX", "3", 1);
	check_name("pbs", "17_3");
	setenv("JOB_ID", "8", 1);
	setenv("SGE_TASK_ID", "undefined", 1);
	check_name("sge", "8");
	setenv("LSB_JOBID", "9", 1);
	setenv("LSB_JOBINDEX", "4", 1);
	check_name("lsf", "9_4");
	setenv("SLURM_JOB_ID", "/../x", 1);
	check_name("slurm", "job");
	assert_false(folder_name_valid("../x"));
	assert_false(folder_name_valid(".x"));
	assert_false(folder_name_valid(""));
}

/* All tasks of an array have one command line: a name in it is not that of a single task. */
static void chosen_names(void **state)
{
	static const struct {
		const char *chosen, *task, *name;
	} table[] = {
		{ "run", "7", "run_7" },	{ "run_7", "7", "run_7" },
		{ "run-007", "7", "run-007" },	{ "run17", "7", "run17_7" },
		{ "7-run", "7", "7-run_7" },	{ "run0", "0", "run0" },
		{ "run", "0", "run_0" },	{ "run", NULL, "run" },
		{ "7", "7", "7" },		{ "run", "undefined", "run" },
	};
	const struct scheduler *sge = scheduler_named("sge");
	char name[FOLDER_NAME_MAX + 1];

	(void)state;
	forget_schedulers();
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		snprintf(name, sizeof(name), "%s", table[i].chosen);
		if (table[i].task)
			setenv("SGE_TASK_ID", table[i].task, 1);
		assert_int_equal(scheduler_task_name(sge, name, sizeof(name)), 0);
		assert_string_equal(name, table[i].name);
		forget_schedulers();
	}
	assert_int_equal(scheduler_task_name(NULL, name, sizeof(name)), 0);
	memset(name, 'x', FOLDER_NAME_MAX - 1);
	name[FOLDER_NAME_MAX - 1] = '\0';
	setenv("SGE_TASK_ID", "1", 1);
	assert_int_equal(scheduler_task_name(sge, name, sizeof(name)), -ENAMETOOLONG);
	forget_schedulers();
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

/* ---- commands of schedulers -------------------------------------------------------- */

static char commands[32];		/* a folder, for them alone */

/* Says `answer` to whoever calls it, and adds what it is called with to the file `asked`. */
static void simulate(const char *name, const char *answer)
{
	char path[64];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", commands, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "#!/bin/sh\necho \"%s $*\" >> %s/asked\necho \"%s\"\n", name, commands, answer);
	fchmod(fileno(out), 0700);
	assert_int_equal(fclose(out), 0);
}

static int make_commands(void **state)
{
	char path[256];

	(void)state;
	snprintf(commands, sizeof(commands), "/tmp/test_batch.XXXXXX");
	if (!mkdtemp(commands))
		return -1;
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", commands);
	forget_schedulers();
	unsetenv("SLURM_JOB_END_TIME");
	return setenv("PATH", path, 1);
}

static int remove_commands(void **state)
{
	char command[64];

	(void)state;
	forget_schedulers();
	snprintf(command, sizeof(command), "rm -r %s", commands);
	return system(command);
}

/* What has been asked since the last time. */
static void take_asked(char got[1024])
{
	char path[64];
	FILE *in;

	snprintf(path, sizeof(path), "%s/asked", commands);
	in = fopen(path, "r");
	assert_non_null(in);
	got[fread(got, 1, 1023, in)] = '\0';
	fclose(in);
	unlink(path);
}

static void check_asked(const char *expected)
{
	char got[1024];

	take_asked(got);
	assert_string_equal(got, expected);
}

static bool has_been_asked(const char *line)
{
	char got[1024];

	take_asked(got);
	return strstr(got, line);
}

/* The last task of an array has the array's number as its own: it never asks for all tasks. */
static void last_task_of_array(void **state)
{
	const struct scheduler *s = scheduler_named("slurm");

	(void)state;
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("SLURM_ARRAY_JOB_ID", "4711", 1);
	setenv("SLURM_ARRAY_TASK_ID", "9", 1);
	simulate("scontrol", "");
	simulate("squeue", "1:00:00");
	assert_int_equal(s->seconds_left(false), 3600);
	check_asked("squeue --noheader --format=%L --job 4711_9\n");
	simulate("squeue", "RUNNING None");
	assert_int_equal(s->requeue(), 0);
	check_asked("squeue --noheader --format=%T %r --states=all --job 4711_9\n"
		    "scontrol --oneliner show job 4711_9\nscontrol requeue 4711_9\n");
}

/* One that is preempted, in its grace time, is requeued by newer Slurms, and may not be by others. */
static void preempted_job(void **state)
{
	static const char *const said[] = {
		"slurm-wlm 24.11.5 Requeue=1 Partition=low PreemptTime=2026-11-26T06:35:26 "
		"PreemptType = preempt/partition_prio PreemptMode=REQUEUE",
		"slurm 22.05.8 Requeue=1 Partition=low PreemptTime=2026-11-26T06:35:26 "
		"PreemptType = preempt/partition_prio PreemptMode=REQUEUE",
		"slurm 24.11.5 Requeue=1 Partition=low PreemptTime=2026-11-26T06:35:26 "
		"PreemptType = preempt/partition_prio PreemptMode=CANCEL",
		"slurm 24.11.5 Requeue=1 Partition=low PreemptTime=None "
		"PreemptType = preempt/partition_prio PreemptMode=REQUEUE",
		"slurm 24.11.5 Requeue=0 Partition=low PreemptTime=2026-11-26T06:35:26 "
		"PreemptType = preempt/partition_prio PreemptMode=REQUEUE",
		"slurm 25.05.1 Requeue=1 QOS=normal PreemptTime=2026-11-26T06:35:26 "
		"PreemptType = preempt/qos PreemptMode = GANG,REQUEUE",
	};
	static const bool by_itself[] = { true, false, false, false, false, true };
	const struct scheduler *s = scheduler_named("slurm");

	(void)state;
	forget_schedulers();
	setenv("SLURM_JOB_ID", "4711", 1);
	simulate("squeue", "RUNNING None");
	simulate("sacctmgr", "cluster");
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		simulate("scontrol", said[i]);
		assert_int_equal(s->requeue(), 0);
		assert_int_equal(has_been_asked("scontrol requeue 4711\n"), !by_itself[i]);
	}
	simulate("sacctmgr", "requeue");
	simulate("scontrol", "slurm 25.05.1 Requeue=1 QOS=normal PreemptTime=2026-11-26T06:35:26 "
			     "PreemptType = preempt/qos PreemptMode = CANCEL");
	assert_int_equal(s->requeue(), 0);
	assert_false(has_been_asked("scontrol requeue 4711\n"));
	forget_schedulers();
}

/* Others have one of their own; and a job that a task has submitted has the task's variables. */
static void job_of_array(void **state)
{
	const struct scheduler *s = scheduler_named("slurm");

	(void)state;
	forget_schedulers();
	setenv("SLURM_JOB_ID", "5000", 1);
	setenv("SLURM_ARRAY_JOB_ID", "4711", 1);
	setenv("SLURM_ARRAY_TASK_ID", "3", 1);
	simulate("scontrol", "");
	simulate("squeue", "RUNNING None");
	assert_int_equal(s->requeue(), 0);
	check_asked("squeue --noheader --format=%T %r --states=all --job 5000\n"
		    "scontrol --oneliner show job 5000\nscontrol requeue 5000\n");
	forget_schedulers();
}

/* What PBS knows of the time that is used is old: that does not move the end. */
static void lag_of_pbs(void **state)
{
	const struct scheduler *s = scheduler_named("pbs");
	int64_t left;

	(void)state;
	setenv("PBS_JOBID", "17.server", 1);
	simulate("qstat", "Resource_List.walltime = 1:00:00 resources_used.walltime = 00:02:00");
	assert_int_equal(s->seconds_left(false), 3480);
	simulate("qstat", "Resource_List.walltime = 1:00:00 resources_used.walltime = 00:01:00");
	left = s->seconds_left(true);
	assert_in_range(left, 3470, 3480);
	simulate("qstat", "Resource_List.walltime = 2:00:00 resources_used.walltime = 00:01:00");
	left = s->seconds_left(true);
	assert_in_range(left, 7070, 7080);
	simulate("qstat", "Resource_List.walltime = 2:00:00 resources_used.walltime = 00:10:00");
	assert_in_range(s->seconds_left(true), 6590, 6600);
	forget_schedulers();
}

/* A length counts from the start of cr_batch: a pause and a restart take of it. */
static void since_start(void **state)
{
	const struct scheduler *sge = scheduler_named("sge"), *slurm = scheduler_named("slurm");

	(void)state;
	setenv("JOB_ID", "8", 1);
	setenv("SLURM_JOB_ID", "4711", 1);
	simulate("qstat", "hard resource_list: h_rt=1:00:00,h_vmem=1G");
	simulate("qconf", "");
	simulate("squeue", "1:00:00");
	assert_int_equal(scheduler_seconds_left(sge, -1, 65, false), 3535);
	assert_int_equal(scheduler_seconds_left(sge, -1, 4000, false), 0);
	assert_int_equal(scheduler_seconds_left(slurm, -1, 65, false), 3600);
	assert_int_equal(scheduler_seconds_left(slurm, 600, 65, false), 535);
	assert_int_equal(scheduler_seconds_left(NULL, 600, 65, false), 535);
	assert_int_equal(scheduler_seconds_left(NULL, -1, 65, false), -1);
	simulate("squeue", "UNLIMITED");
	assert_int_equal(scheduler_seconds_left(slurm, -1, 65, false), -1);
}

#define LIST(job, tasks, state) "<job_list state='running'><JB_job_number>" job "</JB_job_number>" \
	"<JB_name>a d</JB_name><state>" state "</state>" tasks "</job_list>"

/* The earliest of four limits, which are the job's and the queue's. */
static void limits_of_grid_engine(void **state)
{
	static const struct {
		const char *job, *queue;
		int64_t seconds;
	} rows[] = {
		{ "hard resource_list:   h_rt=3600\nenv_list: A=h_rt=5", "\nh_rt  INFINITY\ns_rt  INFINITY", 3600 },
		{ "hard resource_list:   h_rt=3600,s_rt=600", "\nh_rt  INFINITY", 600 },
		{ "hard resource_list:   h_rt=3600", "\nxh_rt  1:0\nh_rt  0:30:0\ns_rt  INFINITY", 1800 },
		{ "hard resource_list:   h_vmem=1G", "\ns_rt  00:10:00\nh_rt  1:00:00", 600 },
		{ "job_number: 8\nenv_list: A=h_rt=5", "\nh_rt  INFINITY", -1 },
		{ "", "", -1 },
	};

	(void)state;
	setenv("JOB_ID", "8", 1);
	setenv("QUEUE", "main.q", 1);
	setenv("HOSTNAME", "kcr1", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		simulate("qstat", rows[i].job);
		simulate("qconf", rows[i].queue);
		assert_int_equal(scheduler_named("sge")->seconds_left(false), rows[i].seconds);
		check_asked("qstat -j 8\nqconf -sq main.q@kcr1\n");
	}
	forget_schedulers();
}

static void deleted_by_grid_engine(void **state)
{
	static const struct {
		const char *task, *said;
		bool deleted;
	} rows[] = {
		{ "undefined", LIST("8", "", "dr"), true },
		{ "undefined", LIST("8", "", "r"), false },
		{ "undefined", LIST("80", "", "dr") LIST("8", "", "Rr") LIST("18", "", "dr"), false },
		{ "undefined", LIST("7", "", "r") LIST("8", "", "dRr"), true },
		{ "2", LIST("8", "<tasks>1</tasks>", "dr") LIST("8", "<tasks>2</tasks>", "r"), false },
		{ "2", LIST("8", "<tasks>1</tasks>", "r") LIST("8", "<tasks>2</tasks>", "dr"), true },
		{ "2", LIST("8", "<tasks>22</tasks>", "dr"), false },
		{ "undefined", "<job_list><JB_job_number>8", false },
		{ "undefined", "", false },
	};

	(void)state;
	setenv("JOB_ID", "8", 1);
	setenv("QUEUE", "main.q", 1);
	setenv("HOSTNAME", "kcr1", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		setenv("SGE_TASK_ID", rows[i].task, 1);
		simulate("qstat", rows[i].said);
		assert_int_equal(scheduler_named("sge")->is_deleted(), rows[i].deleted);
		check_asked("qstat -xml -s r -u * -q main.q@kcr1\n");
	}
	forget_schedulers();
}

static void check_folder(const char *environment, const char *folder, const char *expected)
{
	char got[PATH_MAX];

	setenv("SGE_CKPT_ENV", environment, 1);
	setenv("SGE_CKPT_DIR", folder, 1);
	scheduler_folder(scheduler_named("sge"), got, sizeof(got));
	assert_string_equal(got, expected);
	scheduler_folder(scheduler_named("slurm"), got, sizeof(got));
	assert_string_equal(got, "kcr");
}

static void folders_of_grid_engine(void **state)
{
	const struct passwd *user = getpwuid(geteuid());
	char own[256];

	(void)state;
	assert_non_null(user);
	snprintf(own, sizeof(own), "/scratch/%s", user->pw_name);
	check_folder("kcr", "/scratch", own);
	check_folder("kcr-hourly", "saved", "saved");
	check_folder("kcr", "none", "kcr");
	check_folder("kcr", "", "kcr");
	check_folder("other", "/scratch", "kcr");
	forget_schedulers();
	scheduler_folder(scheduler_named("sge"), own, sizeof(own));
	assert_string_equal(own, "kcr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_of_time), cmocka_unit_test(due_by_interval),
		cmocka_unit_test(failures),	   cmocka_unit_test(due_by_signal),
		cmocka_unit_test(optimum),	   cmocka_unit_test(names_of_jobs),
		cmocka_unit_test(repeated_failures), cmocka_unit_test(locks),
		cmocka_unit_test(long_command),	   cmocka_unit_test(chosen_names),
		cmocka_unit_test_setup_teardown(last_task_of_array, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(preempted_job, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(job_of_array, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(lag_of_pbs, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(since_start, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(limits_of_grid_engine, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(deleted_by_grid_engine, make_commands, remove_commands),
		cmocka_unit_test(folders_of_grid_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
