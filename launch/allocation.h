/* SPDX-License-Identifier: GPL-2.0 */
/* The nodes that a scheduler has given this job, as far as the launcher asks nobody else. */
#ifndef LAUNCH_ALLOCATION_H
#define LAUNCH_ALLOCATION_H

/*
 * As a list for mpirun's --host: "a:2,b:4", or "a,a,b", each with its slots.  Of Slurm, PBS and
 * Grid Engine, by their variables; malloc()ed.  NULL: this is no such job.
 */
char *allocation_hosts(void);

/* Of a list of Slurm for all nodes, "4,2(x3)" (four and three times two): those of the n-th; 0. */
unsigned long allocation_tasks(const char *list, unsigned long n);

#endif /* LAUNCH_ALLOCATION_H */
