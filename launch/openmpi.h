/* SPDX-License-Identifier: GPL-2.0 */
/* The Open MPI that PATH leads to. */
#ifndef LAUNCH_OPENMPI_H
#define LAUNCH_OPENMPI_H

#include <stdbool.h>
#include <stddef.h>

/* Is there an mpirun in PATH? */
bool openmpi_exists(void);

/*
 * Asks its mpirun, or where there is none its ompi_info, for its version: "5.0.7", or "" if
 * they say none.  Returns the first number.
 */
int openmpi_version(char *version, size_t room);

/* The folder of its components, or "". */
void openmpi_components(char *path, size_t room);

#endif /* LAUNCH_OPENMPI_H */
