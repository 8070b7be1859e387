// SPDX-License-Identifier: GPL-2.0
/* Parameters of Open MPI and PMIx, and the proxy's part.  See settings.h. */
#include "launch/settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "launch/allocation.h"
#include "launch/reach.h"

/* Of ranks in Open MPI 4.1 and 5. */
static const struct setting {
	const char *variable, *value[2];
} settings[] = {
	{ SETTINGS_OPEN_MPI "pml", { "ob1", "ob1" } },
	{ SETTINGS_OPEN_MPI "btl", { "cr,self", "cr,self" } },
	/* All added at once: no look-ups after a restart. */
	{ SETTINGS_OPEN_MPI "mpi_add_procs_cutoff", { "1000000", "1000000" } },
	{ SETTINGS_OPEN_MPI "coll", { "^sm,han,adapt,monitoring,hcoll,ucc,portals4",
			     "^sm,han,adapt,monitoring,hcoll,ucc,portals4,xhc,acoll" } },
	{ SETTINGS_OPEN_MPI "osc", { "pt2pt,cr", "rdma,cr" } },	/* cr only reports what is missing */
	{ SETTINGS_OPEN_MPI "sharedfp", { "^sm", "^sm" } },
	/* No memory shared with the launcher's daemons, which would not exist after a restart. */
	{ "PMIX_MCA_gds", { "hash", "hash" } },
	/* A lost server is told of at once, not after a second: a restored rank waits for that. */
	{ "PMIX_MCA_pmix_event_caching_window", { "0", "0" } },
};

bool settings_list(size_t n, int major, const char **variable, const char **value)
{
	if (n >= sizeof(settings) / sizeof(*settings))
		return false;
	*variable = settings[n].variable;
	*value = settings[n].value[major > 4];
	return true;
}

/* What mpirun says of a rank, and srun in its own way. */
static void number_rank(void)
{
	static const char *const names[][2] = {
		{ "SLURM_PROCID", "OMPI_COMM_WORLD_RANK" },
		{ "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE" },
		{ "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK" },
		{ "SLURM_LOCALID", "OMPI_COMM_WORLD_NODE_RANK" },
	};
	const char *list = getenv("SLURM_STEP_TASKS_PER_NODE"), *node = getenv("SLURM_NODEID");
	char here[24];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (getenv(names[i][0]))
			setenv(names[i][1], getenv(names[i][0]), 1);
	if (!list || !node)
		return;
	snprintf(here, sizeof(here), "%lu", allocation_tasks(list, strtoul(node, NULL, 10)));
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", here, 1);
}

void settings_of_rank(void)
{
	const char *series = getenv(SETTINGS_VARIABLE);
	const char *components = getenv(SETTINGS_COMPONENTS_VARIABLE);
	const char *variable, *value;

	if (getenv(REACH_STEP_VARIABLE))
		number_rank();
	for (size_t n = 0; series && settings_list(n, atoi(series), &variable, &value); n++)
		setenv(variable, value, 1);
	if (components)
		setenv(SETTINGS_OPEN_MPI SETTINGS_COMPONENTS, components, 1);
}
