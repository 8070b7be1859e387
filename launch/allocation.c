// SPDX-License-Identifier: GPL-2.0
/*
 * What schedulers say of a job's nodes, see allocation.h: sbatch(1) of Slurm, qsub(1B) of PBS,
 * sge_pe(5) of Grid Engine.
 */
#include "launch/allocation.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long allocation_tasks(const char *list, unsigned long n)
{
	char *end;

	for (; *list; list = *end ? end + 1 : end) {
		unsigned long tasks = strtoul(list, &end, 10), nodes = 1;

		if (!strncmp(end, "(x", 2)) {
			nodes = strtoul(end + 2, &end, 10);
			end += *end == ')';
		}
		if (n < nodes)
			return tasks;
		n -= nodes;
	}
	return 0;
}

/*
 * Adds a host for each line, a name and perhaps its slots behind it; `tasks`, or NULL, has the
 * slots instead.
 */
static void add_lines(FILE *out, FILE *lines, const char *tasks)
{
	char line[512], name[256];
	unsigned long n = 0, slots;

	for (; fgets(line, sizeof(line), lines); n++) {
		int got = sscanf(line, "%255s %lu", name, &slots);

		if (got < 1)
			continue;
		fprintf(out, "%s%s", n ? "," : "", name);
		if (tasks)
			fprintf(out, ":%lu", allocation_tasks(tasks, n));
		else if (got > 1)
			fprintf(out, ":%lu", slots);
	}
}

/* The lines of a file, or of what Slurm's own tool makes of its short form of names. */
static bool add_hosts(FILE *out)
{
	const char *list = getenv("SLURM_JOB_NODELIST"), *tasks = getenv("SLURM_TASKS_PER_NODE");
	const char *file = getenv("PBS_NODEFILE") ?: getenv("PE_HOSTFILE");
	bool slurm = list && tasks;
	FILE *lines = slurm ? allocation_names() : file ? fopen(file, "re") : NULL;

	if (!lines)
		return false;
	add_lines(out, lines, slurm ? tasks : NULL);
	if (slurm)
		pclose(lines);
	else
		fclose(lines);
	return true;
}

char *allocation_hosts(void)
{
	char *list = NULL;
	size_t length;
	FILE *out = open_memstream(&list, &length);
	bool is = out && add_hosts(out);

	if (out && !fclose(out) && is && *list)
		return list;
	free(list);
	return NULL;
}
