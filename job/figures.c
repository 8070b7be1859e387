// SPDX-License-Identifier: GPL-2.0
/* See figures.h. */
#include "job/figures.h"

#define MOST	1e15
#define US	1e3		/* in a millisecond */

const char *const job_figure_names[JOB_FIGURES] = {
	"processes", "threads", "mappings", "files", "content_bytes", "pages_scanned", "pages",
	"pages_shared", "pages_duplicate", "pages_unchanged", "pages_zero", "pages_untouched",
	"pages_mapped",
	"check_ms", "park_ms", "describe_ms", "snapshot_ms", "write_ms", "memory_ms", "scan_ms",
	"sync_ms", "total_ms",
};

static double unit(size_t i)
{
	return i < JOB_FIGURES_COUNTS ? 1 : US;
}

void job_figures_read(struct job_figures *f, const cJSON *json)
{
	for (size_t i = 0; i < JOB_FIGURES; i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, job_figure_names[i]);
		double number = cJSON_IsNumber(item) ? item->valuedouble : 0;

		f->number[i] = number > 0 && number < MOST ? (uint64_t)(number * unit(i) + 0.5) : 0;
	}
}

void job_figures_write(const struct job_figures *f, cJSON *json)
{
	for (size_t i = 0; i < JOB_FIGURES; i++)
		cJSON_AddNumberToObject(json, job_figure_names[i], (double)f->number[i] / unit(i));
}

void job_figures_add(struct job_figures *f, const struct job_figures *other)
{
	for (size_t i = 0; i < JOB_FIGURES; i++) {
		if (i < JOB_FIGURES_COUNTS)
			f->number[i] += other->number[i];
		else if (f->number[i] < other->number[i])
			f->number[i] = other->number[i];
	}
}
