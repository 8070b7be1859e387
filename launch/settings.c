// SPDX-License-Identifier: GPL-2.0
/* Parameters of Open MPI and PMIx, and the proxy's part.  See settings.h. */
#include "launch/settings.h"

#include <stdlib.h>

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

void settings_of_rank(void)
{
	const char *series = getenv(SETTINGS_VARIABLE);
	const char *components = getenv(SETTINGS_COMPONENTS_VARIABLE);
	const char *variable, *value;

	for (size_t n = 0; series && settings_list(n, atoi(series), &variable, &value); n++)
		setenv(variable, value, 1);
	if (components)
		setenv(SETTINGS_OPEN_MPI SETTINGS_COMPONENTS, components, 1);
}
