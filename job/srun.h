/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of Slurm's srun(1).  Its options are brought into one form, --NAME or
 * --NAME=VALUE, with the whole name: so they are saved in a snapshot.
 */
#ifndef JOB_SRUN_H
#define JOB_SRUN_H

#include "job/topic.h"

/*
 * Reads the option at *at, in any form that srun takes, and goes on behind it and its value;
 * appends it to *out (strings_add()).  A word with several short options adds several.
 * 1; 0: it is none of srun's; or -errno with a message (report.h).
 */
int srun_take_option(char *const **at, char ***out);

/* Of an option in this form. */
enum topic srun_topic(const char *option);

/* The value of the option `name` if `option`, in this form, is that; "": it has none; NULL. */
const char *srun_value(const char *option, const char *name);

/* The first option of cr_mpirun, in a snapshot, of a job whose ranks srun starts. */
#define JOB_BY_SRUN	"--launcher=srun"

#endif /* JOB_SRUN_H */
