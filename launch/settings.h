/* SPDX-License-Identifier: GPL-2.0 */
/* What the ranks of a job need to be checkpointable, besides btl/cr itself. */
#ifndef LAUNCH_SETTINGS_H
#define LAUNCH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "launch/command.h"

/* For the proxies: Open MPI's release; the folders of its components, with Open MPI 5. */
#define SETTINGS_VARIABLE		"KCR_MPI_SERIES"
#define SETTINGS_COMPONENTS_VARIABLE	"KCR_MPI_COMPONENTS"
/* For the daemons: the launcher is to get the ranks' output, which it marks or puts in files. */
#define SETTINGS_OUTPUT_VARIABLE	"KCR_MPI_OUTPUT"

#define SETTINGS_OPEN_MPI	"OMPI_MCA_"	/* before the name of a parameter of Open MPI */
#define SETTINGS_COMPONENTS	"mca_base_component_path"

/* The n-th setting of ranks, from 0 on, for Open MPI's release `major`; false: there is none. */
bool settings_list(size_t n, int major, const char **variable, const char **value);

/*
 * In cr_mpirun, for Open MPI's release `major`: says once on standard error which settings of
 * the user have no effect, and sets in the environment what the launcher needs.
 */
void settings_of_launcher(const struct command *c, int major);

/* In a proxy, which knows them by these variables: in the environment, for its rank. */
void settings_of_rank(void);

#endif /* LAUNCH_SETTINGS_H */
