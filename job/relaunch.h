/* SPDX-License-Identifier: GPL-2.0 */
/* A restart of an MPI job: a new mpirun or srun, and each rank below it. */
#ifndef JOB_RELAUNCH_H
#define JOB_RELAUNCH_H

#include <stdbool.h>

#include "job/snapshot.h"

/* Set for the ranks that the new mpirun starts: the snapshot's folder. */
#define RELAUNCH_VARIABLE	"KCR_MPI_RESTART"
/* Likewise, as another snapshot may get that name meanwhile: size and time of the manifest. */
#define RELAUNCH_ID_VARIABLE	"KCR_MPI_RESTART_ID"
/* Set for the one that takes the place of a cr_mpirun: how many failures there were. */
#define RELAUNCH_RECOVERIES	"KCR_MPI_RECOVERIES"

#define RELAUNCH_RETRIES	4	/* of what keeps a job from coming back */
#define RELAUNCH_PAUSE_S	3	/* before each */

/*
 * Replaces this program by an mpirun that starts `self` (the path of
 * cr_restart) with `dir` as argument once per rank.  `given`, a
 * NULL-terminated vector, are options of mpirun or srun that replace those of
 * the snapshot; `lazy`: each rank is restarted with --lazy.  A snapshot that a job is to go back to,
 * and that is not to be had, is tried again, and then the ones that were kept; those of other jobs
 * are passed over.  Returns -errno with a
 * message, or not at all.
 */
int relaunch_job(const char *dir, const char *self, bool lazy, char **given);

/*
 * For what relaunch_job() has started: is what it has found still in `dir`?  s: what was read from there
 * since, which may also be one that the same job has saved later; NULL: not known.  Reads no manifest, as
 * each rank asks.  0, -ENOTUNIQ or another -errno with a message.
 */
int relaunch_check(const char *dir, const struct snapshot *s);

/* For mpirun as relaunch_job() has started it: is this the file by which it has placed the ranks? */
bool relaunch_has_placed(const char *hostfile);

/* Likewise: is this the word that has the ranks, behind it, load lazily? */
bool relaunch_is_lazy(char *const *word);

/*
 * The options for a later restart of this job: `now` are those of its mpirun,
 * restarted from `dir`, whose manifest is `s`.  If relaunch_job() has placed
 * the ranks itself, the user's choice is restored.  0 or -ENOMEM.
 */
int relaunch_options(const char *dir, const struct snapshot *s, char *const *now, char ***out);

/*
 * For a process started this way: the context file of its rank (malloc()ed) in *file;
 * NULL: it is not a rank.  0, or -errno with a message: the file is not here.
 */
int relaunch_rank_file(const char *dir, char **file);

#endif /* JOB_RELAUNCH_H */
