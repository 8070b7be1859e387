// SPDX-License-Identifier: GPL-2.0
/*
 * The nodes of a job that Slurm has made larger or smaller, see allocation.h: scontrol(1), "show
 * job" with --details, which has a list of nodes and one of processors for those that have the
 * same, and sbatch(1) for the variables.
 */
#include "launch/allocation.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES	"SLURM_JOB_NODELIST"
#define TASKS	"SLURM_TASKS_PER_NODE"
#define CPUS	"SLURM_JOB_CPUS_PER_NODE"

struct node {
	char *name;
	unsigned long cpus, tasks;
};

struct nodes {
	struct node *node;
	size_t count;
};

static void free_nodes(struct nodes *all)
{
	for (size_t i = 0; i < all->count; i++)
		free(all->node[i].name);
	free(all->node);
}

/* Without an argument it would look at SLURM_NODELIST first. */
FILE *allocation_names(void)
{
	return popen("exec scontrol show hostnames \"$SLURM_JOB_NODELIST\" 2> /dev/null < /dev/null", "re");
}

/* Adds those of a list in Slurm's short form. */
static void add_nodes(struct nodes *all, const char *names)
{
	char *line = NULL;
	size_t room = 0;
	FILE *lines;

	setenv(NODES, names, 1);
	lines = allocation_names();
	while (lines && getline(&line, &room, lines) > 0) {
		struct node *grown = realloc(all->node, (all->count + 1) * sizeof(*grown));

		line[strcspn(line, "\n")] = '\0';
		if (!grown)
			break;
		all->node = grown;
		grown[all->count] = (struct node){ strdup(line), 0, 0 };
		all->count += grown[all->count].name != NULL;
	}
	free(line);
	if (lines)
		pclose(lines);
}

/* What Slurm says of this job, a line; malloc()ed or NULL.  Its controller may be out of reach. */
static char *ask(void)
{
	FILE *output = popen("exec timeout 10 scontrol --oneliner --details show job \"$SLURM_JOB_ID\" "
			     "2> /dev/null < /dev/null", "re");
	char *line = NULL;
	size_t room = 0;

	if (output && getline(&line, &room, output) < 0) {
		free(line);
		line = NULL;
	}
	if (output)
		pclose(output);
	return line;
}

/* The value of the next " NAME=" at or after *at, malloc()ed, and *at behind it; NULL: there is none. */
static char *next_value(const char **at, const char *name)
{
	const char *found = strstr(*at, name);

	if (!found)
		return NULL;
	found += strlen(name);
	*at = found + strcspn(found, " \n");
	return strndup(found, *at - found);
}

/* How many numbers a list such as 0-3,6 has. */
static unsigned long count_numbers(const char *list)
{
	unsigned long count = 0, first, last;
	char *end;

	for (; *list; list = *end ? end + 1 : end) {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		count += last >= first ? last - first + 1 : 0;
		end += strcspn(end, ",");
	}
	return count;
}

static struct node *find(const struct nodes *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->node[i].name, name))
			return &all->node[i];
	return NULL;
}

/*
 * Groups of nodes have the same processors of their own.  Slurm 22.05 does not tell those of a node
 * that has come from another job.
 */
static void read_processors(struct nodes *all, const char *said)
{
	char *names, *list;

	while ((names = next_value(&said, " Nodes="))) {
		struct nodes group = { 0 };

		list = next_value(&said, " CPU_IDs=");
		if (list)
			add_nodes(&group, names);
		for (size_t i = 0; i < group.count; i++) {
			struct node *n = find(all, group.node[i].name);

			if (n)
				n->cpus = count_numbers(list);
		}
		free_nodes(&group);
		free(names);
		free(list);
	}
}

static unsigned long number(const char *variable)
{
	const char *value = getenv(variable);

	return value ? strtoul(value, NULL, 10) : 0;
}

/* Those of the variables. */
static void read_before(struct nodes *all, const char *names)
{
	const char *tasks = getenv(TASKS), *cpus = getenv(CPUS);

	add_nodes(all, names);
	for (size_t i = 0; i < all->count; i++) {
		all->node[i].tasks = allocation_tasks(tasks, i);
		all->node[i].cpus = cpus ? allocation_tasks(cpus, i) : 0;
	}
}

/*
 * A node has as many tasks as before; one that was not there as many as the user wants, or it can
 * have, or if nobody knows that, as the last one.
 */
static void complete(struct nodes *now, const struct nodes *before)
{
	const unsigned long wanted = number("SLURM_NTASKS_PER_NODE"), each = number("SLURM_CPUS_PER_TASK");
	const struct node *last = &before->node[before->count - 1];

	for (size_t i = 0; i < now->count; i++) {
		struct node *n = &now->node[i], *same = find(before, n->name);

		if (same)
			n->tasks = same->tasks;
		else
			n->tasks = wanted ? wanted : n->cpus ? n->cpus / (each ? each : 1) : last->tasks;
		if (!n->tasks)
			n->tasks = 1;
		if (!n->cpus)
			n->cpus = same ? same->cpus : last->cpus;
	}
}

/* Sets a list such as "4,2(x3)". */
static void set_list(const char *variable, const struct nodes *all, bool cpus)
{
	char *list = NULL;
	size_t length;
	FILE *out = open_memstream(&list, &length);

	for (size_t i = 0, same; out && i < all->count; i += same) {
		unsigned long value = cpus ? all->node[i].cpus : all->node[i].tasks;

		for (same = 1; i + same < all->count; same++)
			if ((cpus ? all->node[i + same].cpus : all->node[i + same].tasks) != value)
				break;
		fprintf(out, "%s%lu", i ? "," : "", value);
		if (same > 1)
			fprintf(out, "(x%zu)", same);
	}
	if (out && !fclose(out))
		setenv(variable, list, 1);
	free(list);
}

static void set_all(const struct nodes *all, const char *names)
{
	char count[24];

	snprintf(count, sizeof(count), "%zu", all->count);
	setenv("SLURM_JOB_NUM_NODES", count, 1);
	setenv("SLURM_NNODES", count, 1);
	setenv(NODES, names, 1);
	setenv("SLURM_NODELIST", names, 1);
	set_list(TASKS, all, false);
	set_list(CPUS, all, true);
}

static void take(const char *names, const char *said, const char *names_before)
{
	struct nodes before = { 0 }, now = { 0 };

	read_before(&before, names_before);
	add_nodes(&now, names);
	if (before.count && now.count) {
		read_processors(&now, said);
		complete(&now, &before);
		set_all(&now, names);
	} else {
		setenv(NODES, names_before, 1);		/* add_nodes() has changed it */
	}
	free_nodes(&before);
	free_nodes(&now);
}

void allocation_renew(void)
{
	const char *given = getenv(NODES);
	char *before = given && getenv(TASKS) && getenv("SLURM_JOB_ID") ? strdup(given) : NULL;
	char *said = before ? ask() : NULL;
	const char *at = said;
	char *now = said ? next_value(&at, " NodeList=") : NULL;

	if (now && *now != '(' && strcmp(now, before))	/* no "(null)" */
		take(now, said, before);
	free(now);
	free(said);
	free(before);
}
