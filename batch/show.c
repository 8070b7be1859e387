// SPDX-License-Identifier: GPL-2.0
/* cr_batch --status; see show.h. */
#include "batch/show.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc/duration.h"
#include "batch/folder.h"
#include "batch/state.h"
#include "report/report.h"

struct job {
	char name[FOLDER_NAME_MAX + 1];
	struct state state;
	bool supervised;		/* a cr_batch works for it */
};

/* Running without a supervisor: it was killed, or the node was lost. */
static const char *phase_of(const struct job *j)
{
	return j->state.phase == STATE_RUNNING && !j->supervised ? "interrupted" :
		state_phase_name(j->state.phase);
}

/* ---- text -------------------------------------------------------------------------- */

static void print_last(const struct state *s, time_t now)
{
	char age[48];

	if (!s->last.number) {
		printf("; no checkpoint yet");
		return;
	}
	printf("; checkpoint %u, %s old, %.1f MB in %.1f s", s->last.number,
	       duration_format(age, sizeof(age), s->last.time < now ? now - s->last.time : 0),
	       (double)s->last.bytes / 1e6, s->last.cost_s);
}

static void print_text(const struct job *j)
{
	const struct state *s = &j->state;
	time_t now = time(NULL);
	char due[48];

	printf("%-12s %s", j->name, phase_of(j));
	if (s->phase == STATE_ENDED && WIFSIGNALED(s->status))
		printf(" by signal %d", WTERMSIG(s->status));
	else if (s->phase == STATE_ENDED)
		printf(" with %d", WEXITSTATUS(s->status));
	print_last(s, now);
	if (s->failures)
		printf("; the last %u saves failed", s->failures);
	printf("; %u restarts", s->restarts);
	if (s->next_due && j->supervised)
		printf("; the next save is due in %s",
		       duration_format(due, sizeof(due), s->next_due > now ? s->next_due - now : 0));
	putchar('\n');
}

/* ---- JSON -------------------------------------------------------------------------- */

static void add_json(cJSON *array, const struct job *j)
{
	const struct state *s = &j->state;
	cJSON *one = cJSON_CreateObject(), *last;
	time_t now = time(NULL);

	cJSON_AddStringToObject(one, "job", j->name);
	cJSON_AddStringToObject(one, "phase", phase_of(j));
	cJSON_AddBoolToObject(one, "supervised", j->supervised);
	cJSON_AddNumberToObject(one, "pid", s->leader.pid);
	cJSON_AddNumberToObject(one, "restarts", s->restarts);
	cJSON_AddNumberToObject(one, "failed_saves", s->failures);
	if (s->phase == STATE_ENDED && WIFSIGNALED(s->status))
		cJSON_AddNumberToObject(one, "signal", WTERMSIG(s->status));
	else if (s->phase == STATE_ENDED)
		cJSON_AddNumberToObject(one, "exit_code", WEXITSTATUS(s->status));
	if (s->next_due && j->supervised)
		cJSON_AddNumberToObject(one, "next_due_s", difftime(s->next_due, now));
	if (s->last.number) {
		last = cJSON_AddObjectToObject(one, "checkpoint");
		cJSON_AddNumberToObject(last, "number", s->last.number);
		cJSON_AddNumberToObject(last, "time", (double)s->last.time);
		cJSON_AddNumberToObject(last, "age_s", difftime(now, s->last.time));
		cJSON_AddNumberToObject(last, "bytes", (double)s->last.bytes);
		cJSON_AddNumberToObject(last, "cost_s", s->last.cost_s);
	}
	cJSON_AddItemToArray(array, one);
}

/* ---- the folder -------------------------------------------------------------------- */

/* The name of the job whose state a file is; false: it is another file. */
static bool job_name(const char *file, char name[FOLDER_NAME_MAX + 1])
{
	size_t length = strlen(file), suffix = strlen("." STATE_SUFFIX);

	if (length <= suffix || length - suffix > FOLDER_NAME_MAX ||
	    strcmp(file + length - suffix, "." STATE_SUFFIX))
		return false;
	memcpy(name, file, length - suffix);
	name[length - suffix] = '\0';
	return folder_name_valid(name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int show_job(const struct folder *f, const char *file, cJSON *array)
{
	struct job j = {};
	int err;

	if (!job_name(file, j.name))
		return 0;
	err = state_load(&j.state, f, j.name);
	if (err)
		return err;
	j.supervised = folder_is_locked(f, j.name);
	if (array)
		add_json(array, &j);
	else
		print_text(&j);
	state_free(&j.state);
	return 0;
}

static void print_json(cJSON *array)
{
	char *text = cJSON_Print(array);

	if (text)
		puts(text);
	free(text);
	cJSON_Delete(array);
}

int show_folder(const char *path, bool json)
{
	struct folder f;
	struct dirent **files = NULL;
	int count, err = folder_open(&f, path, "", false);
	cJSON *array = json ? cJSON_CreateArray() : NULL;

	if (err)
		return err;
	count = scandirat(f.fd, ".", &files, NULL, by_name);
	if (count < 0)
		err = report_errno(-errno, "cannot read the folder %s", f.path);
	for (int i = 0; i < count; i++) {
		err = err ?: show_job(&f, files[i]->d_name, array);
		free(files[i]);
	}
	free(files);
	if (array)
		print_json(array);
	folder_close(&f);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = report_errno(-errno, "cannot write");
	return err;
}
