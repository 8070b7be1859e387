// SPDX-License-Identifier: GPL-2.0
/*
 * Grid Engine, as version 8.1.9 does it; see grid_engine.h.  Its commands work on hosts that
 * are its administrative or submit hosts.
 */
#include "batch/grid_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/ask.h"

/* ---- the end of a run -------------------------------------------------------------- */

/* -1 is no limit. */
static int64_t earlier(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/*
 * s_rt counts as much as h_rt: it warns in the first run of a job only, in the later ones
 * Grid Engine kills the job then.
 */
static int64_t requested(void)
{
	const char *const argv[] = { "qstat", "-j", ask_variable("JOB_ID"), NULL };
	char *text = ask_answer(argv), *line = text ? strstr(text, "hard resource_list:") : NULL;
	int64_t limit = -1;

	if (line) {
		line[strcspn(line, "\n")] = '\0';
		limit = earlier(ask_time_behind(line, "h_rt="), ask_time_behind(line, "s_rt="));
	}
	free(text);
	return limit;
}

static int64_t of_queue(void)
{
	char queue[256];
	const char *const argv[] = { "qconf", "-sq", queue, NULL };
	int64_t limit;
	char *text;

	snprintf(queue, sizeof(queue), "%s@%s", ask_variable("QUEUE"), ask_variable("HOSTNAME"));
	text = ask_answer(argv);
	limit = earlier(ask_time_behind(text, "\nh_rt "), ask_time_behind(text, "\ns_rt "));
	free(text);
	return limit;
}

int64_t grid_engine_length(bool anew)
{
	int64_t of_job = requested();

	(void)anew;
	return earlier(of_job, of_queue());
}

/* ---- its checkpoint environment ---------------------------------------------------- */

const char *grid_engine_folder(void)
{
	const char *folder = ask_variable("SGE_CKPT_DIR");

	/* That of others may be any, such as the template's /tmp, which is another on each host. */
	if (strncmp(ask_variable("SGE_CKPT_ENV"), "kcr", 3) || !*folder || !strcasecmp(folder, "none"))
		return NULL;
	return folder;
}

/* ---- deleted jobs ------------------------------------------------------------------ */

/* The text between <tag> and </tag> in an element that ends at `end`; its length. */
static size_t value_of(const char *element, const char *end, const char *tag, const char **value)
{
	char mark[48];
	const char *at;

	snprintf(mark, sizeof(mark), "<%s>", tag);
	at = strstr(element, mark);
	if (!at || at >= end)
		return 0;
	*value = at + strlen(mark);
	return strcspn(*value, "<");
}

static bool has_value(const char *element, const char *end, const char *tag, const char *wanted)
{
	const char *value;
	size_t length = value_of(element, end, tag, &value);

	return length && length == strlen(wanted) && !strncmp(value, wanted, length);
}

/* Among the running jobs that `qstat -xml` lists, a task of an array each. */
static bool is_listed_deleted(const char *text, const char *job, const char *task)
{
	const char *element, *end, *state;
	size_t length;

	for (element = strstr(text, "<job_list"); element; element = strstr(end, "<job_list")) {
		end = strstr(element, "</job_list>");
		if (!end)
			return false;
		if (!has_value(element, end, "JB_job_number", job) ||
		    (*task && !has_value(element, end, "tasks", task)))
			continue;
		length = value_of(element, end, "state", &state);
		if (length && memchr(state, 'd', length))
			return true;
	}
	return false;
}

bool grid_engine_is_deleted(void)
{
	char queue[256];
	const char *const argv[] = { "qstat", "-xml", "-s", "r", "-u", "*", "-q", queue, NULL };
	const char *task = ask_variable("SGE_TASK_ID");
	bool deleted;
	char *text;

	snprintf(queue, sizeof(queue), "%s@%s", ask_variable("QUEUE"), ask_variable("HOSTNAME"));
	text = ask_answer(argv);
	deleted = text && is_listed_deleted(text, ask_variable("JOB_ID"),
					    strcmp(task, "undefined") ? task : "");
	free(text);
	return deleted;
}
