/* SPDX-License-Identifier: GPL-2.0 */
/* The Open MPI that PATH leads to. */
#ifndef LAUNCH_OPENMPI_H
#define LAUNCH_OPENMPI_H

#include <stdbool.h>
#include <stddef.h>

/* Is there an mpirun in PATH? */
bool openmpi_exists(void);

/* Its version, for a process in this one's place, which need not ask again. */
#define OPENMPI_VARIABLE	"KCR_MPI_RELEASE"

/*
 * Asks its mpirun, or where there is none its ompi_info, for its version: "5.0.7", or "" if
 * they say none.  Returns the first number.  Once: takes what a process before was told from the
 * environment.
 */
int openmpi_version(char *version, size_t room);

/* What openmpi_version() has found; NULL: nothing. */
const char *openmpi_found(void);

#endif /* LAUNCH_OPENMPI_H */
