// SPDX-License-Identifier: GPL-2.0
/* What cr_batch knows of schedulers, and asks of them: their commands are simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/folder.h"
#include "batch/scheduler.h"

static void forget_schedulers(void)
{
	static const char *const variables[] = {
		"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "PBS_JOBID",
		"PBS_ARRAY_INDEX", "JOB_ID", "SGE_TASK_ID", "LSB_JOBID", "LSB_JOBINDEX",
		"SLURM_STEP_ID", "SLURM_PROCID", "SGE_CKPT_ENV", "SGE_CKPT_DIR", "QUEUE", "HOSTNAME",
		"FLUX_URI", "FLUX_JOB_ID", "FLUX_ENCLOSING_ID", "FLUX_TASK_RANK", "PBS_ARRAYID",
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
	static const struct {
		const char *scheduler, *name;
		const char *set[6];	/* variables, each followed by its value */
	} table[] = {
		{ "none", "job", {} },
		{ "slurm", "4713", { "SLURM_JOB_ID", "4713" } },
		{ "slurm", "4711_2", { "SLURM_JOB_ID", "4713", "SLURM_ARRAY_JOB_ID", "4711",
				       "SLURM_ARRAY_TASK_ID", "2" } },
		/* The batch script is the first task of no step. */
		{ "slurm", "4713", { "SLURM_JOB_ID", "4713", "SLURM_PROCID", "0" } },
		{ "slurm", "4713-step1-task15", { "SLURM_JOB_ID", "4713", "SLURM_STEP_ID", "1",
						  "SLURM_PROCID", "15" } },
		{ "pbs", "17_3", { "PBS_JOBID", "17[3].server.site", "PBS_ARRAY_INDEX", "3" } },
		{ "pbs", "17_3", { "PBS_JOBID", "17[3].server.site", "PBS_ARRAYID", "3" } },
		{ "flux", "Ara6jq1zXq-task2", { "FLUX_URI", "local:///run/flux", "FLUX_JOB_ID",
						"\u0192Ara6jq1zXq", "FLUX_TASK_RANK", "2" } },
		{ "flux", "f2yPqL", { "FLUX_URI", "local:///run/flux", "FLUX_ENCLOSING_ID",
				      "f2yPqL" } },
		{ "sge", "8", { "JOB_ID", "8", "SGE_TASK_ID", "undefined" } },
		{ "lsf", "9_4", { "LSB_JOBID", "9", "LSB_JOBINDEX", "4" } },
		{ "slurm", "job", { "SLURM_JOB_ID", "/../x" } },
	};

	(void)state;
	forget_schedulers();
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		for (size_t k = 0; k < 6 && table[i].set[k]; k += 2)
			setenv(table[i].set[k], table[i].set[k + 1], 1);
		check_name(table[i].scheduler, table[i].name);
	}
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
	snprintf(commands, sizeof(commands), "/tmp/test_sched.XXXXXX");
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
	/* Its name is its own, whether Slurm is asked once or again. */
	simulate("squeue", "N/A");
	check_name("slurm", "5000");
	check_asked("squeue --noheader --format=%K --job 5000\n");
	setenv("SLURM_JOB_ID", "5001", 1);
	setenv("SLURM_ARRAY_JOB_ID", "4711", 1);
	setenv("SLURM_ARRAY_TASK_ID", "3", 1);
	simulate("squeue", "3");
	check_name("slurm", "4711_3");
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

/* Flux says a large number if there is no limit. */
static void limit_of_flux(void **state)
{
	const struct scheduler *s;

	(void)state;
	setenv("FLUX_URI", "local:///run/flux/local", 1);
	s = scheduler_detect();
	assert_non_null(s);
	assert_string_equal(s->name, "flux");
	simulate("flux", "3599");
	assert_int_equal(s->seconds_left(false), 3599);
	check_asked("flux job timeleft\n");
	simulate("flux", "4294967295");
	assert_int_equal(s->seconds_left(true), -1);
	assert_null(s->requeue);
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
		cmocka_unit_test(names_of_jobs), cmocka_unit_test(chosen_names),
		cmocka_unit_test_setup_teardown(last_task_of_array, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(preempted_job, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(job_of_array, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(lag_of_pbs, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(limit_of_flux, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(since_start, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(limits_of_grid_engine, make_commands, remove_commands),
		cmocka_unit_test_setup_teardown(deleted_by_grid_engine, make_commands, remove_commands),
		cmocka_unit_test(folders_of_grid_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
