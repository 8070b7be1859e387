/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Figures of a job's checkpoint: what each rank's cr_checkpoint has told in JSON, under the same
 * names.  Counts are added up; of times that of the slowest rank counts.
 */
#ifndef JOB_FIGURES_H
#define JOB_FIGURES_H

#include <cjson/cJSON.h>
#include <stdint.h>

#define JOB_FIGURES_COUNTS	13
#define JOB_FIGURES_TIMES	9
#define JOB_FIGURES		(JOB_FIGURES_COUNTS + JOB_FIGURES_TIMES)

/* It is a message (WIRE_FIGURES) as it is: one of another length is not added. */
struct job_figures {
	uint64_t number[JOB_FIGURES];		/* by job_figure_names; times in µs */
};

/* The counts, then the times. */
extern const char *const job_figure_names[JOB_FIGURES];

/* What a JSON object has of them; a number that is missing or impossible is 0. */
void job_figures_read(struct job_figures *f, const cJSON *json);
void job_figures_write(const struct job_figures *f, cJSON *json);
/* Adds those of other ranks. */
void job_figures_add(struct job_figures *f, const struct job_figures *other);

#endif /* JOB_FIGURES_H */
