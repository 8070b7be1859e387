/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checkpoints that an MPI program asks for itself.  See kcr_mpi_checkpoint(3).
 * Link with -lkcr_mpi, which needs neither libcr nor Open MPI.
 */
#ifndef KCR_MPI_H
#define KCR_MPI_H

#ifdef __cplusplus
extern "C" {
#endif

/* This rank asks alone, whatever the others do; without it all ranks call. */
#define KCR_MPI_ALONE	1u

/*
 * Saves the whole job as the folder `name`, with ".kcr" added if it is missing,
 * relative to the current folder.  `keep`: how many snapshots of this
 * name are kept, at least 1.  `flags`: KCR_MPI_ALONE, or 0: then it is collective
 * over MPI_COMM_WORLD, begins when every rank has called it, and uses rank 0's
 * arguments.  Waits for a checkpoint under way to end.  Call it between MPI_Init and
 * MPI_Finalize, in one thread of a rank at a time, not from a callback or a signal
 * handler; this thread makes no progress in MPI meanwhile.
 *
 * Returns 0 when the snapshot is complete; 1 in a job that was restarted from it;
 * -1 with errno when it failed (the job goes on): ENOTSUP: the job was started
 * without checkpoints; EINVAL; ENAMETOOLONG; EBUSY: another thread is asking;
 * ESRCH: a rank is in MPI_Finalize or ended; or an error of cr_checkpoint(1).
 */
int kcr_mpi_checkpoint(const char *name, unsigned int keep, unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif /* KCR_MPI_H */
