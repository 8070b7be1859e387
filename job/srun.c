// SPDX-License-Identifier: GPL-2.0
/*
 * Options of srun, see srun.h: those of srun(1) of Slurm 22.05, and those that the manuals of
 * later releases up to 25.05 add.  getopt_long(3) reads them: names may be shortened as long
 * as only one fits.
 */
#include "job/srun.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/snapshot.h"
#include "report/report.h"

enum value { NO, YES, MAY };		/* MAY: only with a =, or in the same word */

static const struct option {
	const char *name;
	char letter;
	enum value value;
	enum topic topic;
} options[] = {
	{ "accel-bind", 0, YES, 0 },		{ "account", 'A', YES, 0 },
	{ "acctg-freq", 0, YES, 0 },		{ "bb", 0, YES, 0 },
	{ "bbf", 0, YES, 0 },			{ "bcast", 0, MAY, 0 },
	{ "bcast-exclude", 0, YES, 0 },		{ "begin", 'b', YES, 0 },
	{ "chdir", 'D', YES, TOPIC_CWD },	{ "cluster-constraint", 0, YES, 0 },
	{ "clusters", 'M', YES, 0 },		{ "comment", 0, YES, 0 },
	{ "compress", 0, MAY, 0 },		{ "constraint", 'C', YES, 0 },
	{ "container", 0, YES, 0 },		{ "container-id", 0, YES, 0 },
	{ "contiguous", 0, NO, 0 },		{ "core-spec", 'S', YES, 0 },
	{ "cores-per-socket", 0, YES, 0 },	{ "cpu-bind", 0, YES, TOPIC_BIND },
	{ "cpu-freq", 0, YES, 0 },		{ "cpus-per-gpu", 0, YES, 0 },
	{ "cpus-per-task", 'c', YES, 0 },	{ "deadline", 0, YES, 0 },
	{ "delay-boot", 0, YES, 0 },		{ "dependency", 'd', YES, 0 },
	{ "disable-status", 'X', NO, 0 },	{ "distribution", 'm', YES, TOPIC_MAP },
	{ "epilog", 0, YES, 0 },		{ "error", 'e', YES, 0 },
	{ "exact", 0, NO, 0 },			{ "exclude", 'x', YES, TOPIC_HOSTS },
	{ "exclusive", 0, MAY, 0 },		{ "export", 0, YES, 0 },
	{ "external-launcher", 0, MAY, 0 },	{ "extra", 0, YES, 0 },
	{ "extra-node-info", 'B', YES, 0 },	{ "gid", 0, YES, 0 },
	{ "gpu-bind", 0, YES, 0 },		{ "gpu-freq", 0, YES, 0 },
	{ "gpus", 'G', YES, 0 },		{ "gpus-per-node", 0, YES, 0 },
	{ "gpus-per-socket", 0, YES, 0 },	{ "gpus-per-task", 0, YES, 0 },
	{ "gres", 0, YES, 0 },			{ "gres-flags", 0, YES, 0 },
	{ "help", 'h', NO, 0 },			{ "het-group", 0, YES, 0 },
	{ "hint", 0, YES, 0 },			{ "hold", 'H', NO, 0 },
	{ "immediate", 'I', MAY, 0 },		{ "input", 'i', YES, 0 },
	{ "interactive", 0, NO, 0 },
	{ "job-name", 'J', YES, 0 },		{ "jobid", 0, YES, 0 },
	{ "kill-on-bad-exit", 'K', MAY, 0 },	{ "label", 'l', NO, 0 },
	{ "licenses", 'L', YES, 0 },		{ "mail-type", 0, YES, 0 },
	{ "mail-user", 0, YES, 0 },		{ "mcs-label", 0, YES, 0 },
	{ "mem", 0, YES, 0 },			{ "mem-bind", 0, YES, 0 },
	{ "mem-per-cpu", 0, YES, 0 },		{ "mem-per-gpu", 0, YES, 0 },
	{ "mincpus", 0, YES, 0 },		{ "mpi", 0, YES, 0 },
	{ "msg-timeout", 0, YES, 0 },		{ "multi-prog", 0, NO, 0 },
	{ "network", 0, YES, 0 },		{ "nice", 0, MAY, 0 },
	{ "no-allocate", 'Z', NO, 0 },		{ "no-kill", 'k', MAY, 0 },
	{ "nodefile", 'F', YES, TOPIC_HOSTS },	{ "nodelist", 'w', YES, TOPIC_HOSTS },
	{ "nodes", 'N', YES, TOPIC_MAP },	{ "ntasks", 'n', YES, TOPIC_COUNT },
	{ "ntasks-per-core", 0, YES, TOPIC_MAP }, { "ntasks-per-gpu", 0, YES, TOPIC_MAP },
	{ "ntasks-per-node", 0, YES, TOPIC_MAP }, { "ntasks-per-socket", 0, YES, TOPIC_MAP },
	{ "open-mode", 0, YES, 0 },		{ "output", 'o', YES, 0 },
	{ "overcommit", 'O', NO, 0 },		{ "overlap", 0, NO, 0 },
	{ "oversubscribe", 's', NO, 0 },	{ "partition", 'p', YES, 0 },
	{ "power", 0, YES, 0 },			{ "prefer", 0, YES, 0 },
	{ "preserve-env", 'E', NO, 0 },		{ "priority", 0, YES, 0 },
	{ "profile", 0, YES, 0 },		{ "prolog", 0, YES, 0 },
	{ "propagate", 0, MAY, 0 },		{ "pty", 0, MAY, 0 },
	{ "qos", 'q', YES, 0 },			{ "quiet", 'Q', NO, 0 },
	{ "quit-on-interrupt", 0, NO, 0 },	{ "reboot", 0, NO, 0 },
	{ "relative", 'r', YES, TOPIC_MAP },	{ "reservation", 0, YES, 0 },
	{ "resv-ports", 0, MAY, 0 },		{ "segment", 0, YES, 0 },
	{ "send-libs", 0, MAY, 0 },		{ "signal", 0, YES, 0 },
	{ "slurmd-debug", 0, YES, 0 },		{ "sockets-per-node", 0, YES, 0 },
	{ "spread-job", 0, NO, 0 },		{ "stepmgr", 0, NO, 0 },
	{ "switches", 0, YES, 0 },		{ "task-epilog", 0, YES, 0 },
	{ "task-prolog", 0, YES, 0 },		{ "test-only", 0, NO, 0 },
	{ "thread-spec", 0, YES, 0 },		{ "threads", 'T', YES, 0 },
	{ "threads-per-core", 0, YES, 0 },	{ "time", 't', YES, 0 },
	{ "time-min", 0, YES, 0 },		{ "tmp", 0, YES, 0 },
	{ "treewidth", 0, YES, 0 },		{ "tres-bind", 0, YES, 0 },
	{ "tres-per-task", 0, YES, 0 },		{ "uid", 0, YES, 0 },
	{ "unbuffered", 'u', NO, 0 },		{ "usage", 0, NO, 0 },
	{ "use-min-nodes", 0, NO, 0 },		{ "verbose", 'v', NO, 0 },
	{ "version", 'V', NO, 0 },		{ "wait", 'W', YES, 0 },
	{ "wckey", 0, YES, 0 },			{ "whole", 0, NO, 0 },
	{ "x11", 0, MAY, 0 },			{ "cpu_bind", 0, YES, 0 },
	{ "ntasks-per-tres", 0, YES, TOPIC_MAP }, { "pack-group", 0, YES, 0 },
	{ "tasks", 0, YES, 0 },			{ "tasks-per-node", 0, YES, 0 },
};

/* Names that are not the usual ones for the same. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{ "cpu_bind", "cpu-bind" },		{ "pack-group", "het-group" },
	{ "tasks", "ntasks" },			{ "tasks-per-node", "ntasks-per-node" },
};

#define COUNT	(sizeof(options) / sizeof(*options))

static const char *usual_name(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (!strcmp(name, aliases[i].alias))
			return aliases[i].name;
	return name;
}

static int add(char ***out, const struct option *option, const char *value)
{
	char *text;
	int err;

	if (asprintf(&text, "--%s%s%s", usual_name(option->name), value ? "=" : "", value ?: "") < 0)
		return -ENOMEM;
	err = strings_add(out, text);
	free(text);
	return err;
}

/* Of the length given, perhaps shortened; NULL: there is none, or more than one. */
static const struct option *find_name(const char *name, size_t length)
{
	const struct option *found = NULL;
	size_t fitting = 0;

	for (const struct option *each = options; each < options + COUNT; each++) {
		if (strncmp(each->name, name, length))
			continue;
		if (strlen(each->name) == length)
			return each;
		found = each;
		fitting++;
	}
	return fitting == 1 ? found : NULL;
}

static const struct option *find_letter(char letter)
{
	for (const struct option *each = options; each < options + COUNT; each++)
		if (each->letter == letter)
			return each;
	return NULL;
}

/* `value`: what is in the same word, or NULL; then the next word is taken if there must be one. */
static int take_value(const struct option *option, const char *value, char *const **at, char ***out)
{
	if (value && option->value == NO)
		return report_fail(-EINVAL, "--%s of srun takes no value", option->name);
	if (!value && option->value == YES) {
		value = **at;
		if (!value)
			return report_fail(-EINVAL, "--%s needs a value", option->name);
		++*at;
	}
	return add(out, option, value);
}

static int take_long(char *const **at, char ***out)
{
	const char *name = **at + 2, *equals = strchr(name, '=');
	const struct option *option = find_name(name, equals ? (size_t)(equals - name) : strlen(name));

	if (!option)
		return 0;
	++*at;
	return take_value(option, equals ? equals + 1 : NULL, at, out) ?: 1;
}

static int take_short(char *const **at, char ***out)
{
	const char *first = **at + 1;
	int err = 0;

	if (!find_letter(*first))
		return 0;
	++*at;
	for (const char *word = first; *word && !err;) {
		const struct option *option = find_letter(*word++);
		bool attached = option && option->value != NO && *word;

		if (!option)
			return report_fail(-EINVAL, "-%s: srun has no option -%c", first, word[-1]);
		err = take_value(option, attached ? word : NULL, at, out);
		if (attached)
			break;
	}
	return err ?: 1;
}

int srun_take_option(char *const **at, char ***out)
{
	const char *word = **at;
	int got;

	if (!word || word[0] != '-' || !word[1] || !strcmp(word, "--"))
		return 0;
	got = word[1] == '-' ? take_long(at, out) : take_short(at, out);
	return got == -ENOMEM ? report_fail(got, "no memory") : got;
}

const char *srun_value(const char *option, const char *name)
{
	size_t length = strlen(name);

	if (strncmp(option, "--", 2) || strncmp(option + 2, name, length))
		return NULL;
	option += 2 + length;
	return *option == '=' ? option + 1 : *option ? NULL : "";
}

enum topic srun_topic(const char *option)
{
	for (const struct option *each = options; each < options + COUNT; each++)
		if (srun_value(option, each->name))
			return each->topic;
	return TOPIC_NONE;
}
