// SPDX-License-Identifier: GPL-2.0
/* Folders of a run; see scratch.h. */
#include "batch/scratch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/log.h"
#include "job/snapshot.h"

#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

/*
 * One may be in another: the first rule that matches is used.  They are noted from the last
 * to the first, and the rules are in the opposite order.
 */
static const char *const variables[] = {
	"TMPDIR", "SLURM_TMPDIR", "PBS_JOBDIR", "_CONDOR_SCRATCH_DIR",
};

static size_t length_of(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static bool has(char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (!strcmp(*list, text))
			return true;
	return false;
}

static int note_one(char ***list, const char *variable, const char *folder)
{
	size_t count = length_of(*list);
	char *text;
	int err = 0;

	if (asprintf(&text, "%s=%s", variable, folder) < 0)
		return -ENOMEM;
	if (!has(*list, text)) {
		if (count == SCRATCH_MAX) {
			free(**list);
			memmove(*list, *list + 1, count * sizeof(**list));
		}
		err = strings_add(list, text);
	}
	free(text);
	return err;
}

int scratch_note(char ***list)
{
	int err = 0;

	for (size_t i = COUNT(variables); i > 0 && !err; i--) {
		const char *folder = getenv(variables[i - 1]);

		if (folder && *folder == '/')
			err = note_one(list, variables[i - 1], folder);
	}
	return err;
}

/* An equals sign and a backslash in a path have a backslash before them. */
static void put_escaped(FILE *out, const char *path)
{
	for (; *path; path++) {
		if (*path == '=' || *path == '\\')
			putc('\\', out);
		putc(*path, out);
	}
}

static int add_rule(char ***rules, const char *from, const char *to)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	put_escaped(out, from);
	putc('=', out);
	put_escaped(out, to);
	err = fclose(out) ? -ENOMEM : strings_add(rules, text);
	free(text);
	return err;
}

/* A rule for one of a run before, if it is gone and this run has another. */
static int rule_for(const char *before, char ***rules)
{
	const char *from = strchr(before, '='), *to;
	char variable[32];

	if (!from || from - before >= (int)sizeof(variable) || from[1] != '/')
		return 0;
	snprintf(variable, sizeof(variable), "%.*s", (int)(from - before), before);
	to = getenv(variable);
	if (!to || *to != '/' || !access(++from, F_OK) || errno != ENOENT)
		return 0;
	log_event(LOG_ROUTINE, "%s, the %s of a run before, is not there: its files are looked for in %s",
		  from, variable, to);
	return add_rule(rules, from, to);
}

int scratch_rules(char *const *before, char ***out)
{
	int err = 0;

	*out = NULL;
	for (size_t i = length_of(before); i > 0 && !err; i--)
		err = rule_for(before[i - 1], out);
	return err;
}
