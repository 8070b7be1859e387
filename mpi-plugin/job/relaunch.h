/* SPDX-License-Identifier: GPL-2.0 */
/* A restart of an MPI job: a new mpirun, and each rank below it. */
#ifndef MPI_JOB_RELAUNCH_H
#define MPI_JOB_RELAUNCH_H

/* Set for the ranks that the new mpirun starts: the snapshot's folder. */
#define RELAUNCH_VARIABLE	"KCR_MPI_RESTART"

/*
 * Replaces this program by an mpirun that starts `self` (the path of
 * cr_restart) with `dir` as argument once per rank.  `overrides`, a
 * NULL-terminated vector, are options of mpirun that count more than those of
 * the snapshot.  Returns -errno with a message, or not at all.
 */
int relaunch_job(const char *dir, const char *self, char **overrides);

/*
 * For a process started so: the context file of its rank (malloc()ed), NULL:
 * this is none of them.
 */
char *relaunch_rank_file(const char *dir);

#endif /* MPI_JOB_RELAUNCH_H */
