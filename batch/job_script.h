/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job script that cr_batch runs from a copy in the job's folder (--script): the next run
 * finds it there, wherever the scheduler keeps scripts on that node, and unchanged.
 */
#ifndef KCR_BATCH_JOB_SCRIPT_H
#define KCR_BATCH_JOB_SCRIPT_H

#include <limits.h>
#include <stdbool.h>

#include "batch/folder.h"

#define SCRIPT_SUFFIX	"script"

/* The path of the copy; returns `out`. */
char *job_script_path(const struct folder *f, char out[PATH_MAX]);

/*
 * Makes the copy, or replaces it.  A first line that runs the script under cr_batch is left
 * out.  0, or -errno with a message.
 */
int job_script_copy(const struct folder *f, const char *path);

/* Is there a copy that was made of another text?  False as well if one cannot be read. */
bool job_script_is_other(const struct folder *f, const char *path);

#endif /* KCR_BATCH_JOB_SCRIPT_H */
