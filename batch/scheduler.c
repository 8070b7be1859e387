// SPDX-License-Identifier: GPL-2.0
/* The schedulers; Grid Engine's operations are in grid_engine.c. */
#include "batch/scheduler.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/ask.h"
#include "batch/grid_engine.h"
#include "proc/clock.h"
#include "report/report.h"

#define SECOND		1000000000ll
#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

/* ---- Slurm ------------------------------------------------------------------------- */

#define SLURM_ID_ROOM	64

/*
 * This job for Slurm's commands; returns `out`.  The last task that is split off an array
 * has the array's number as its SLURM_JOB_ID, which to them means all tasks.  Another job's
 * variables of an array may be those of the task that submitted it.
 */
static const char *slurm_id(char out[SLURM_ID_ROOM])
{
	const char *job = ask_variable("SLURM_JOB_ID"), *task = ask_variable("SLURM_ARRAY_TASK_ID");
	bool shared = *task && !strcmp(job, ask_variable("SLURM_ARRAY_JOB_ID"));

	snprintf(out, SLURM_ID_ROOM, "%s%s%s", job, shared ? "_" : "", shared ? task : "");
	return out;
}

static int64_t slurm_seconds_left(bool anew)
{
	char id[SLURM_ID_ROOM];
	const char *const argv[] = { "squeue", "--noheader", "--format=%L", "--job",
				     slurm_id(id), NULL };
	const char *end = getenv("SLURM_JOB_END_TIME");
	int64_t left;
	char *text;

	if (!anew && end && atoll(end) > 0)
		return atoll(end) > time(NULL) ? atoll(end) - time(NULL) : 0;
	text = ask_answer(argv);
	left = ask_time_behind(text, "");
	free(text);
	return left;
}

/*
 * Has Slurm itself ended this run, other than because its time is over?  As long as the
 * job's processes are ending, it would requeue also a job that was cancelled, and nobody
 * could be rid of it; one that it requeues is to run again in any case.
 */
static bool slurm_has_ended_run(void)
{
	char id[SLURM_ID_ROOM];
	const char *const argv[] = { "squeue", "--noheader", "--format=%T %r", "--states=all",
				     "--job", slurm_id(id), NULL };
	char *text = ask_answer(argv);
	bool ended = text && !strstr(text, "TimeLimit") &&
		(strstr(text, "COMPLETING") || strstr(text, "CANCELLED") || strstr(text, "PENDING"));

	free(text);
	return ended;
}

/* Is this one of several tasks of a step, which save themselves? */
static bool slurm_has_other_tasks(void)
{
	return *ask_variable("SLURM_STEP_ID") && atoi(ask_variable("SLURM_STEP_NUM_TASKS")) > 1;
}

static int slurm_requeue(void)
{
	char id[SLURM_ID_ROOM];
	const char *const argv[] = { "scontrol", "requeue", slurm_id(id), NULL };

	if (slurm_has_other_tasks())
		return report_fail(-ECANCELED, "that would end the other tasks of the step before they "
				   "are saved: leave it to the job script when srun has ended, or to "
				   "RequeueExit in slurm.conf");
	if (slurm_has_ended_run())
		return report_fail(-ECANCELED, "Slurm has ended this run (scancel, scontrol requeue), "
				   "and decides whether there is another");
	return ask_order(argv);
}

/* ---- PBS --------------------------------------------------------------------------- */

/*
 * What is used becomes known to the server every two minutes or so: where that would move
 * the end, it was known better before.
 */
static int64_t pbs_seconds_left(bool anew)
{
	static bool known;
	static int64_t start;		/* of the job, by now_ns(), s */
	const char *const argv[] = { "qstat", "-f", ask_variable("PBS_JOBID"), NULL };
	char *text = ask_answer(argv);
	int64_t limit = ask_time_behind(text, "Resource_List.walltime");
	int64_t used = ask_time_behind(text, "resources_used.walltime");
	int64_t now = now_ns() / SECOND;

	(void)anew;
	free(text);
	if (limit < 0)
		return -1;
	if (used < 0)
		used = 0;
	if (!known || now - used < start)
		start = now - used;
	known = true;
	return now - start > limit ? 0 : limit - (now - start);
}

static int pbs_requeue(void)
{
	const char *const argv[] = { "qrerun", ask_variable("PBS_JOBID"), NULL };

	return ask_order(argv);
}

/* ---- the table --------------------------------------------------------------------- */

static const struct scheduler schedulers[] = {
	{
		.name = "slurm", .title = "Slurm", .mark = "SLURM_JOB_ID",
		.id = { "SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID" }, .task = "SLURM_ARRAY_TASK_ID",
		.step = "SLURM_STEP_ID", .rank = "SLURM_PROCID",
		.seconds_left = slurm_seconds_left, .requeue = slurm_requeue,
	}, {
		.name = "pbs", .title = "PBS", .mark = "PBS_JOBID",
		.id = { "PBS_JOBID" }, .task = "PBS_ARRAY_INDEX",
		.seconds_left = pbs_seconds_left, .requeue = pbs_requeue,
	}, {
		.name = "sge", .title = "Grid Engine", .mark = "SGE_TASK_ID",
		.id = { "JOB_ID" }, .task = "SGE_TASK_ID", .no_task = "undefined",
		.seconds_left = grid_engine_length, .says_length = true, .requeue_code = 99,
		.hold_code = 100, .ends_by = SIGUSR2, .overlaps = true,
		.save_signal = SIGURG, .folder = grid_engine_folder,
		.is_deleted = grid_engine_is_deleted,
	}, {
		.name = "lsf", .title = "LSF", .mark = "LSB_JOBID",
		.id = { "LSB_JOBID" }, .task = "LSB_JOBINDEX", .no_task = "0",
	},
};

int64_t scheduler_seconds_left(const struct scheduler *s, int64_t length, int64_t since_start,
			       bool anew)
{
	int64_t left = length;

	if (length < 0 && s && s->seconds_left)
		left = s->seconds_left(anew);
	if (left < 0 || (length < 0 && !s->says_length))
		return left;
	return left > since_start ? left - since_start : 0;
}

const struct scheduler *scheduler_detect(void)
{
	for (size_t i = 0; i < COUNT(schedulers); i++)
		if (getenv(schedulers[i].mark))
			return &schedulers[i];
	return NULL;
}

const struct scheduler *scheduler_named(const char *name)
{
	for (size_t i = 0; i < COUNT(schedulers); i++)
		if (!strcmp(schedulers[i].name, name))
			return &schedulers[i];
	return NULL;
}

/* The name of PBS goes on after a dot or, for an array, with "[3]": digits are enough. */
static void add_plain(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);

	for (; (isalnum((unsigned char)*text) || *text == '_') && used + 1 < size; text++)
		out[used++] = *text;
	out[used] = '\0';
}

/* Each task of a step has checkpoints of its own. */
static void add_step(const struct scheduler *s, char *out, size_t size)
{
	const char *step = s->step ? getenv(s->step) : NULL;
	const char *rank = s->rank ? getenv(s->rank) : NULL;
	size_t used = strlen(out);

	if (!step || !rank)
		return;
	snprintf(out + used, size - used, "-step");
	add_plain(out, size, step);
	used = strlen(out);
	snprintf(out + used, size - used, "-task");
	add_plain(out, size, rank);
}

/* The number of the array's task that this is; NULL: it is none. */
static const char *array_task(const struct scheduler *s)
{
	const char *task = s && s->task ? getenv(s->task) : NULL;

	return task && (!s->no_task || strcmp(task, s->no_task)) ? task : NULL;
}

/* Is the number the last thing in a name, as in "run-07" or "run_7"? */
static bool ends_with_number(const char *name, const char *number)
{
	size_t at = strlen(name);

	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	return name[at] && strtoul(name + at, NULL, 10) == strtoul(number, NULL, 10);
}

int scheduler_task_name(const struct scheduler *s, char *name, size_t size)
{
	const char *task = array_task(s);
	size_t used = strlen(name);

	if (!task || ends_with_number(name, task))
		return 0;
	if (used + 1 + strlen(task) >= size)
		return -ENAMETOOLONG;
	name[used++] = '_';
	name[used] = '\0';
	add_plain(name, size, task);
	return 0;
}

void scheduler_job_name(const struct scheduler *s, char *out, size_t size)
{
	const char *task = array_task(s), *id = NULL;

	*out = '\0';
	for (size_t i = 0; s && !id && i < COUNT(s->id) && s->id[i]; i++)
		id = getenv(s->id[i]);
	if (id)
		add_plain(out, size, id);
	if (!*out) {
		snprintf(out, size, "job");
		return;
	}
	if (task) {
		add_plain(out, size, "_");
		add_plain(out, size, task);
	}
	add_step(s, out, size);
}

void scheduler_folder(const struct scheduler *s, char *out, size_t size)
{
	const char *folder = s && s->folder ? s->folder() : NULL;
	const struct passwd *user;

	if (!folder)
		folder = "kcr";
	user = *folder == '/' ? getpwuid(geteuid()) : NULL;
	if (user)
		snprintf(out, size, "%s/%s", folder, user->pw_name);
	else if (*folder == '/')
		snprintf(out, size, "%s/%u", folder, geteuid());
	else
		snprintf(out, size, "%s", folder);
}
