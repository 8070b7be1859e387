/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which job it is.  Each start has a number, which restarts and recoveries keep; snapshots have it
 * in their manifest, as jobs may save to one name.
 */
#ifndef JOB_IDENTITY_H
#define JOB_IDENTITY_H

#include <stdint.h>

/* Set for the cr_restart of a recovery, and the cr_mpirun of each restart: sixteen hexadecimal digits. */
#define IDENTITY_VARIABLE	"KCR_MPI_IDENTITY"

/* What the variable says; 0: nothing. */
uint64_t identity_given(void);

/*
 * That of the job of this process: the one given, which its children do not get, or a new one.
 * It is the same in every call; 0: none could be made.
 */
uint64_t identity_own(void);

#endif /* JOB_IDENTITY_H */
