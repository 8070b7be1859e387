/* SPDX-License-Identifier: GPL-2.0 */
/* What srun could do, but not for ranks that are to be saved. */
#ifndef LAUNCH_SRUN_REFUSED_H
#define LAUNCH_SRUN_REFUSED_H

#include <stdbool.h>

/* An option in the form of job/srun.h: 0, or -EOPNOTSUPP with a message. */
int srun_check_option(const char *option);
/* Likewise the variables that stand for such options, and the allocation. */
int srun_check_variables(void);

/* Does this value of --export have all of the environment? */
bool srun_exports_all(const char *list);

#endif /* LAUNCH_SRUN_REFUSED_H */
