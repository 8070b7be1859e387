/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tools do for an MPI job instead of a process or a context file.
 * See kcr-mpi(7).
 */
#ifndef KCR_UTIL_MPI_JOB_H
#define KCR_UTIL_MPI_JOB_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"

struct mpi_job_options {
	unsigned int keep;		/* snapshots of that name */
	const char *local;		/* folder on every node for its ranks' files, or NULL */
};

/*
 * If the target is an mpirun with a coordinator: makes it save the job.  Returns
 * false if it is not; else true with *err 0 or -errno with a message (-EBUSY: it
 * was started to have one, but takes no requests now).
 */
bool mpi_job_checkpoint(const struct checkpoint_options *o, const struct mpi_job_options *job,
			bool json, int *err);

/* For tools that cannot save a job: -EOPNOTSUPP with a message if the process is such an mpirun. */
int mpi_job_refuse(pid_t target);

/* Prints the manifest of a snapshot, as text or as JSON.  0 or -errno with a message. */
int mpi_job_show(const char *dir, bool json, bool verify);

/*
 * For cr_restart: if one of the arguments is a snapshot, everything after it
 * is for mpirun, and this returns only on failure: -errno with a
 * message.  In a rank of the new job, *file is the context file to
 * restart (malloc()ed).  1: there is no snapshot among the arguments, or *file
 * is set.
 */
int mpi_job_restart(int argc, char **argv, char **file);

/* In a rank whose file is open: is it of the snapshot that is restarted?  0 or -errno with a message. */
int mpi_job_check_rank(void);

#endif /* KCR_UTIL_MPI_JOB_H */
