// SPDX-License-Identifier: GPL-2.0
/*
 * What srun is told of nodes, see srun_nodes.h.  Of each option it takes the last one only, so
 * the user's --exclude and ours have to be one.  A list of nodes that must be used is a
 * preference here: srun takes other nodes of the allocation for those that it no longer names.
 */
#include "launch/srun_nodes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/snapshot.h"
#include "job/srun.h"
#include "launch/hosts.h"
#include "report/report.h"

#define ARBITRARY	"arbitrary"	/* a rank for each name of the list, in that order */

/* The words of a file, up to the # of each line, with commas between them. */
static int read_names(const char *path, char **names)
{
	FILE *file = fopen(path, "re"), *out;
	char line[512], *word, *rest;
	size_t length;

	if (!file)
		return report_errno(-errno, "%s", path);
	out = open_memstream(names, &length);
	for (bool first = true; out && fgets(line, sizeof(line), file);) {
		line[strcspn(line, "#")] = '\0';
		for (rest = line; (word = strtok_r(rest, ", \t\r\n", &rest)); first = false)
			fprintf(out, "%s%s", first ? "" : ",", word);
	}
	fclose(file);
	return !out || fclose(out) ? -ENOMEM : 0;
}

/* Of a list, or a file with one: for srun that is what has a slash. */
static int names_of(const char *value, bool is_file, char **names)
{
	if (is_file || strchr(value, '/'))
		return read_names(value, names);
	*names = strdup(value);
	return *names ? 0 : -ENOMEM;
}

static int add_option(char ***out, const char *name, const char *value)
{
	char *text;
	int err;

	if (asprintf(&text, "--%s=%s", name, value) < 0)
		return -ENOMEM;
	err = strings_add(out, text);
	free(text);
	return err;
}

/* The user's nodes and the lost ones. */
static int add_exclude(char *const *options, const char *lost, char ***out)
{
	const char *given = NULL;
	char *names = NULL, *all = NULL;
	int err = 0;

	for (; *options; options++)
		if (srun_value(*options, "exclude"))
			given = srun_value(*options, "exclude");
	if (given)
		err = names_of(given, false, &names);
	if (!err && asprintf(&all, "%s%s%s", names ?: "", names && *names ? "," : "", lost) < 0)
		err = -ENOMEM;
	if (!err)
		err = add_option(out, "exclude", all);
	free(names);
	free(all);
	return err;
}

/*
 * Each of the list that is left, once; "": none, or nobody knows, as the list has ranges.
 * *changed: were there others?  malloc()ed or NULL.
 */
static char *names_left(const char *list, const char *lost, bool *changed)
{
	char *left = NULL, name[256];
	size_t length;
	FILE *out = open_memstream(&left, &length);

	*changed = strchr(list, '[');
	for (; out && *list && !strchr(list, '['); list += strspn(list, ",")) {
		size_t end = strcspn(list, ",");

		snprintf(name, sizeof(name), "%.*s", (int)end, list);
		list += end;
		fflush(out);
		if (hosts_has(lost, name))
			*changed = true;
		else if (!hosts_has(left, name))
			fprintf(out, "%s%s", length ? "," : "", name);
	}
	return out && !fclose(out) ? left : NULL;
}

/* In *left what remains of a list or a file with one; NULL: all of it. */
static int look_at(const char *value, bool is_file, const char *lost, char **left)
{
	char *names = NULL;
	bool changed;
	int err = names_of(value, is_file, &names);

	*left = err ? NULL : names_left(names, lost, &changed);
	free(names);
	if (err || !*left)
		return err ?: -ENOMEM;
	if (!changed) {
		free(*left);
		*left = NULL;
	}
	return 0;
}

static bool is_list(const char *option)
{
	return srun_value(option, "nodelist") || srun_value(option, "nodefile");
}

/* *changed: has a list become shorter?  Then there are not enough names for all ranks. */
static int add_list(const char *option, const char *lost, bool *changed, char ***out)
{
	const char *list = srun_value(option, "nodelist"), *file = srun_value(option, "nodefile");
	char *left;
	int err = look_at(list ?: file, file, lost, &left);

	if (err)
		return err;
	if (!left)
		return strings_add(out, option);
	if (*left)
		err = add_option(out, "nodelist", left);
	free(left);
	*changed = true;
	return err;
}

/* srun looks at this for --distribution=arbitrary without a list. */
static int check_hostfile(const char *lost, bool *changed)
{
	const char *path = getenv("SLURM_HOSTFILE");
	char *left = NULL;
	int err = path ? look_at(path, true, lost, &left) : 0;

	if (!err && left) {
		unsetenv("SLURM_HOSTFILE");
		*changed = true;
	}
	free(left);
	return err;
}

static bool is_arbitrary(const char *distribution)
{
	return distribution && !strncmp(distribution, ARBITRARY, strlen(ARBITRARY));
}

int srun_add_without(char *const *options, const char *lost, char ***out)
{
	const bool any = lost && *lost;
	bool changed = false;
	int err = any ? add_exclude(options, lost, out) : 0;

	if (any && !err)
		err = check_hostfile(lost, &changed);
	for (char *const *each = options; any && *each && !err; each++)
		if (is_list(*each))
			err = add_list(*each, lost, &changed, out);
	if (changed && is_arbitrary(getenv("SLURM_DISTRIBUTION")))
		unsetenv("SLURM_DISTRIBUTION");
	for (; *options && !err; options++) {
		bool done = any && (is_list(*options) || srun_value(*options, "exclude") ||
				    srun_value(*options, "relative"));

		if (!done && !(changed && is_arbitrary(srun_value(*options, "distribution"))))
			err = strings_add(out, *options);
	}
	return err;
}
