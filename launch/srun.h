/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slurm's srun as the launcher, in an allocation that is there already.  The daemons are in a
 * step of their own, which overlaps that of the ranks' proxies: Slurm ends with a step
 * whatever was started in it.
 */
#ifndef LAUNCH_SRUN_H
#define LAUNCH_SRUN_H

#include <stdbool.h>

#include "launch/command.h"

/*
 * Is srun to start the ranks of a cr_mpirun with these arguments?  If --launcher=srun comes
 * first; also with --launcher=auto or nothing of the kind, where there is no mpirun
 * but an allocation of Slurm.
 */
bool srun_is_launcher(char *const *arguments);

/*
 * command_split() for arguments of srun; no program, if srun is only asked for help.  0, or
 * -errno with a message (report.h): also for what cannot be done for a job that is to be
 * saved, and outside an allocation.
 */
int srun_split(struct command *c, char *const *arguments, char *const *inserted);

/*
 * Appends to *out the command that starts the proxies, and sets in the environment what srun
 * needs.  `lost`: nodes that are not used any more (names separated by commas), or NULL;
 * `again`: after a recovery, when Slurm may still count the ranks' former step.
 */
int srun_for_ranks(const struct command *c, const char *lost, bool again, char ***out);
/* Likewise the command that starts `daemon` on each other node of the allocation. */
int srun_for_daemons(const char *daemon, const char *lost, char ***out);
/* In the process that becomes that command: leaves srun's variables out of its environment. */
void srun_forget_wishes(void);

#endif /* LAUNCH_SRUN_H */
