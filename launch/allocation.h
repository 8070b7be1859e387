/* SPDX-License-Identifier: GPL-2.0 */
/* The nodes that a scheduler has given this job, as far as the launcher asks nobody else. */
#ifndef LAUNCH_ALLOCATION_H
#define LAUNCH_ALLOCATION_H

#include <stdio.h>

/*
 * As a list for mpirun's --host: "a:2,b:4", or "a,a,b", each with its slots.  Of Slurm, PBS and
 * Grid Engine, by their variables; malloc()ed.  NULL: this is no such job.
 */
char *allocation_hosts(void);

/*
 * Has the job's nodes in the variables of the environment as the scheduler knows them now: Slurm,
 * which may have added some.  The others do not add nodes to a job that runs.
 */
void allocation_renew(void);

/* What Slurm's own tool makes of SLURM_JOB_NODELIST: a name in each line; for pclose(3), or NULL. */
FILE *allocation_names(void);

/* Of a list of Slurm for all nodes, "4,2(x3)" (four and three times two): those of the n-th; 0. */
unsigned long allocation_tasks(const char *list, unsigned long n);

#endif /* LAUNCH_ALLOCATION_H */
