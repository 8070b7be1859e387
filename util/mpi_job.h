/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tools do for an MPI job instead of a process or a context file.
 * See kcr-mpi(7).
 */
#ifndef KCR_UTIL_MPI_JOB_H
#define KCR_UTIL_MPI_JOB_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"
#include "job/relaunch.h"

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
 * message.  In a rank of the new job, file->path is the context file to
 * restart, else NULL.  1: there is no snapshot among the arguments, or it is set.
 */
int mpi_job_restart(int argc, char **argv, struct relaunch_file *file);

/* Is what is open at `fd` the file that the snapshot means?  0 or -errno with a message. */
int mpi_job_check_rank(const struct relaunch_file *file, int fd);

#endif /* KCR_UTIL_MPI_JOB_H */
