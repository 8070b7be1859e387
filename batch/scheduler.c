// SPDX-License-Identifier: GPL-2.0
/* The schedulers; the operations of Slurm and Grid Engine are in files of their names. */
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
#include "batch/slurm.h"
#include "proc/clock.h"
#include "report/report.h"

#define SECOND		1000000000ll
#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

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

/* ---- Flux -------------------------------------------------------------------------- */

/* Whole seconds, or at least UINT_MAX: no limit (flux-job(1)). */
static int64_t flux_seconds_left(bool anew)
{
	static const char *const argv[] = { "flux", "job", "timeleft", NULL };
	char *text = ask_answer(argv);
	int64_t left = ask_time_behind(text, "");

	(void)anew;
	free(text);
	return left >= UINT32_MAX ? -1 : left;
}

/* ---- the table --------------------------------------------------------------------- */

static const struct scheduler schedulers[] = {
	{
		.name = "slurm", .title = "Slurm", .mark = "SLURM_JOB_ID",
		.id = { "SLURM_JOB_ID" }, .array = "SLURM_ARRAY_JOB_ID",
		.task = { "SLURM_ARRAY_TASK_ID" }, .is_task = slurm_is_task,
		.step = "SLURM_STEP_ID", .rank = "SLURM_PROCID",
		.seconds_left = slurm_seconds_left, .requeue = slurm_requeue,
	}, {
		.name = "pbs", .title = "PBS", .mark = "PBS_JOBID",
		.id = { "PBS_JOBID" }, .task = { "PBS_ARRAY_INDEX", "PBS_ARRAYID" },
		.seconds_left = pbs_seconds_left, .requeue = pbs_requeue,
	}, {
		.name = "sge", .title = "Grid Engine", .mark = "SGE_TASK_ID",
		.id = { "JOB_ID" }, .task = { "SGE_TASK_ID" }, .no_task = "undefined",
		.seconds_left = grid_engine_length, .says_length = true, .requeue_code = 99,
		.hold_code = 100, .ends_by = SIGUSR2, .overlaps = true,
		.save_signal = SIGURG, .folder = grid_engine_folder,
		.is_deleted = grid_engine_is_deleted,
	}, {
		.name = "lsf", .title = "LSF", .mark = "LSB_JOBID",
		.id = { "LSB_JOBID" }, .task = { "LSB_JOBINDEX" }, .no_task = "0",
	}, {
		.name = "flux", .title = "Flux", .mark = "FLUX_URI",
		.id = { "FLUX_JOB_ID", "FLUX_ENCLOSING_ID" }, .rank = "FLUX_TASK_RANK",
		.seconds_left = flux_seconds_left,
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

/*
 * The name of PBS goes on after a dot or, for an array, with "[3]": digits are enough.  That of Flux
 * begins with a letter that is not ASCII.
 */
static void add_plain(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);

	while ((unsigned char)*text >= 0x80)
		text++;
	for (; (isalnum((unsigned char)*text) || *text == '_') && used + 1 < size; text++)
		out[used++] = *text;
	out[used] = '\0';
}

/* Each task of a step, or of a job without steps, has checkpoints of its own. */
static void add_step(const struct scheduler *s, char *out, size_t size)
{
	const char *step = s->step ? getenv(s->step) : NULL;
	const char *rank = s->rank ? getenv(s->rank) : NULL;
	size_t used = strlen(out);

	if (!rank || (s->step && !step))
		return;
	if (step) {
		snprintf(out + used, size - used, "-step");
		add_plain(out, size, step);
		used = strlen(out);
	}
	snprintf(out + used, size - used, "-task");
	add_plain(out, size, rank);
}

/* The first of the variables that is set; NULL: none is. */
static const char *first_set(const char *const variable[3])
{
	const char *found = NULL;

	for (int i = 0; !found && i < 3 && variable[i]; i++)
		found = getenv(variable[i]);
	return found;
}

/* The number of the array's task that this is; NULL: it is none. */
static const char *array_task(const struct scheduler *s)
{
	const char *task = s ? first_set(s->task) : NULL;

	if (!task || (s->no_task && !strcmp(task, s->no_task)) || (s->is_task && !s->is_task()))
		return NULL;
	return task;
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
	if (task && s->array)
		id = getenv(s->array);
	if (s && !id)
		id = first_set(s->id);
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
