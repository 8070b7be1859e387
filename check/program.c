// SPDX-License-Identifier: GPL-2.0
/* Looking at a program before anybody saves it; see program.h. */
#include "check/program.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/program.h"
#include "check/disk.h"
#include "checkpoint/inside.h"
#include "job/snapshot.h"
#include "report/report.h"

struct survey {
	char **obstacles;		/* a vector of messages */
	bool mpi;			/* an mpirun that saves its job: not looked at */
	struct checkpoint_estimate size;
	struct disk disk;
};

/* Adds a message, unless it is there. */
static void add_obstacle(void *arg, const char *message)
{
	struct survey *s = arg;

	for (char **each = s->obstacles; each && *each; each++)
		if (!strcmp(*each, message))
			return;
	if (strings_add(&s->obstacles, message)) {
		fputs("cr_check: no memory\n", stderr);
		exit(1);
	}
}

/* What report_fail() has recorded. */
static void add_failure(struct survey *s, int err)
{
	add_obstacle(s, report_message() ? report_message() : strerror(-err));
	report_clear();
}

static void look(struct survey *s, const struct program_options *o)
{
	const struct checkpoint_options checkpoint = { .scope = CHECKPOINT_TREE, .target = o->pid };
	int err = inside_examine(&checkpoint, o->stop, add_obstacle, s, &s->size);

	if (err)
		add_failure(s, err);
	err = disk_measure(o->folder, s->size.bytes, &s->disk);
	if (err) {
		add_failure(s, err);
	} else if (s->disk.free_bytes < s->size.bytes) {
		report_fail(-ENOSPC, "there is not enough space in %s: %.1f MB are needed, %.1f MB are "
			    "free", o->folder, (double)s->size.bytes / 1e6,
			    (double)s->disk.free_bytes / 1e6);
		add_failure(s, -ENOSPC);
	}
}

/* The seconds that writing takes; 0: not known. */
static double seconds(const struct survey *s)
{
	return s->disk.bytes_per_s > 0 ? (double)s->size.bytes / s->disk.bytes_per_s : 0;
}

static void print_text(const struct survey *s, const struct program_options *o)
{
	if (s->mpi) {
		printf("note   program    process %d is the mpirun of an MPI job, which is saved as a whole "
		       "(kcr-mpi(7)): check a rank\n", o->pid);
		return;
	}
	for (char **each = s->obstacles; each && *each; each++)
		printf("failed obstacle   %s\n", *each);
	if (!s->obstacles)
		printf("ok     program    process %d can be saved with all its descendants%s\n", o->pid,
		       o->stop ? "" : ", as far as is known while it runs (see --stop)");
	if (!s->size.nr_processes)
		return;
	printf("note   size       about %.1f MB: %zu processes with %zu threads\n",
	       (double)s->size.bytes / 1e6, s->size.nr_processes, s->size.nr_threads);
	if (seconds(s) > 0)
		printf("note   time       about %.1f s to write that to %s, which takes %.0f MB/s\n",
		       seconds(s), o->folder, s->disk.bytes_per_s / 1e6);
}

static void print_json(const struct survey *s, const struct program_options *o)
{
	cJSON *json = cJSON_CreateObject(), *obstacles;
	char *text;

	cJSON_AddNumberToObject(json, "pid", o->pid);
	cJSON_AddBoolToObject(json, "mpi_job", s->mpi);
	cJSON_AddBoolToObject(json, "stopped", o->stop && !s->mpi);
	obstacles = cJSON_AddArrayToObject(json, "obstacles");
	for (char **each = s->obstacles; each && *each; each++)
		cJSON_AddItemToArray(obstacles, cJSON_CreateString(*each));
	if (!s->mpi) {
		cJSON_AddNumberToObject(json, "processes", (double)s->size.nr_processes);
		cJSON_AddNumberToObject(json, "threads", (double)s->size.nr_threads);
		cJSON_AddNumberToObject(json, "bytes", (double)s->size.bytes);
		cJSON_AddNumberToObject(json, "seconds", seconds(s));
		cJSON_AddStringToObject(json, "folder", o->folder);
		cJSON_AddNumberToObject(json, "free_bytes", (double)s->disk.free_bytes);
	}
	text = cJSON_Print(json);
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(json);
}

bool program_examine(const struct program_options *o)
{
	struct survey s = { .mpi = program_is_mpi(o->pid) };
	bool good;

	if (!s.mpi)
		look(&s, o);
	if (o->json)
		print_json(&s, o);
	else
		print_text(&s, o);
	good = !s.obstacles;
	strings_free(s.obstacles);
	return good;
}
