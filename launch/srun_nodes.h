/* SPDX-License-Identifier: GPL-2.0 */
/* Options and variables of srun that name nodes, when some of these were lost. */
#ifndef LAUNCH_SRUN_NODES_H
#define LAUNCH_SRUN_NODES_H

/*
 * Appends `options` (in the form of job/srun.h, NULL-terminated) to *out, such that srun does
 * without the nodes `lost` (names of Slurm, separated by commas; NULL or "": as they are), and
 * changes variables of the same meaning.  0 or -errno, with a message unless it is -ENOMEM.
 */
int srun_add_without(char *const *options, const char *lost, char ***out);

#endif /* LAUNCH_SRUN_NODES_H */
