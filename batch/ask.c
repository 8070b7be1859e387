// SPDX-License-Identifier: GPL-2.0
/* Commands of a scheduler; see ask.h. */
#include "batch/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch/command.h"
#include "batch/scheduler.h"
#include "proc/duration.h"
#include "report/report.h"

#define ANSWER_ROOM	65536

char *ask_answer(const char *const argv[])
{
	char *out = malloc(ANSWER_ROOM);

	if (out && command_run(argv, SCHEDULER_ANSWER_S, out, ANSWER_ROOM)) {
		free(out);
		return NULL;
	}
	return out;
}

int ask_order(const char *const argv[])
{
	char said[512];
	int status = command_run(argv, SCHEDULER_ANSWER_S, said, sizeof(said));

	if (!status)
		return 0;
	said[strcspn(said, "\n")] = '\0';
	if (status == -ETIMEDOUT)
		return report_fail(status, "%s %s did not answer in %d s", argv[0], argv[1], SCHEDULER_ANSWER_S);
	if (status < 0)
		return report_errno(status, "cannot run %s", argv[0]);
	return report_fail(-EIO, "%s %s ended with %d%s%s", argv[0], argv[1], status,
			   *said ? ": " : "", said);
}

const char *ask_variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

bool ask_word_behind(const char *text, const char *key, char *out, size_t size)
{
	const char *at = text ? strstr(text, key) : NULL;
	size_t length;

	if (!at)
		return false;
	at += strlen(key);
	at += strspn(at, " =\t");
	length = strcspn(at, " ,\t\n");
	if (!length || length >= size)
		return false;
	memcpy(out, at, length);
	out[length] = '\0';
	return true;
}

int64_t ask_time_behind(const char *text, const char *key)
{
	char value[32];

	return ask_word_behind(text, key, value, sizeof(value)) ? duration_parse(value) : -1;
}
