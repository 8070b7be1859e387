// SPDX-License-Identifier: GPL-2.0
/* Parameters of Open MPI and PMIx.  See settings.h. */
#include "launch/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/openmpi.h"

#define OPEN_MPI	"OMPI_MCA_"
#define COMPONENTS	"mca_base_component_path"

/* Of ranks in Open MPI 4.1 and 5. */
static const struct setting {
	const char *variable, *value[2];
} settings[] = {
	{ OPEN_MPI "pml", { "ob1", "ob1" } },
	{ OPEN_MPI "btl", { "cr,self", "cr,self" } },
	/* All added at once: no look-ups after a restart. */
	{ OPEN_MPI "mpi_add_procs_cutoff", { "1000000", "1000000" } },
	{ OPEN_MPI "coll", { "^sm,han,adapt,monitoring,hcoll,ucc,portals4",
			     "^sm,han,adapt,monitoring,hcoll,ucc,portals4,xhc,acoll" } },
	{ OPEN_MPI "osc", { "pt2pt,cr", "rdma,cr" } },	/* cr only reports what is missing */
	{ OPEN_MPI "sharedfp", { "^sm", "^sm" } },
	/* No memory shared with the launcher's daemons, which would not exist after a restart. */
	{ "PMIX_MCA_gds", { "hash", "hash" } },
};

/* Only those that a user may have chosen with a reason are worth a line. */
static const char *wanted(const struct command *c, const char *variable)
{
	if (strncmp(variable, OPEN_MPI, strlen(OPEN_MPI)))
		return NULL;
	return command_parameter(c, variable + strlen(OPEN_MPI));
}

/*
 * mpirun 5.0.7 gives ranks PMIx's folder under the name of Open MPI's parameter, so that no
 * component outside of its library would be found: the proxy gives them the right one.
 */
static void set_components(const struct command *c)
{
	const char *given = command_parameter(c, COMPONENTS);
	char path[PATH_MAX];

	if (given) {
		setenv(SETTINGS_COMPONENTS_VARIABLE, given, 1);
		return;
	}
	openmpi_components(path, sizeof(path));
	if (*path)
		setenv(SETTINGS_COMPONENTS_VARIABLE, path, 1);
}

void settings_of_launcher(const struct command *c, int major)
{
	size_t length = 0;
	char names[160], series[16];

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const char *value = wanted(c, settings[i].variable);

		if (value && strcmp(value, settings[i].value[major > 4]))
			length += snprintf(names + length, sizeof(names) - length, "%s%s",
					   length ? ", " : "",
					   settings[i].variable + strlen(OPEN_MPI));
	}
	if (length)
		fprintf(stderr, "KCR: your settings of %s have no effect: a job that can be "
			"checkpointed needs others\n", names);
	snprintf(series, sizeof(series), "%d", major);
	setenv(SETTINGS_VARIABLE, series, 1);
	/* The topology, in the same way as PMIX_MCA_gds. */
	setenv(OPEN_MPI "rtc_hwloc_vmhole", "none", 1);
	setenv("PMIX_MCA_pmix_hwloc_hole_kind", "none", 1);
	if (major > 4)
		set_components(c);
}

void settings_of_rank(void)
{
	const char *series = getenv(SETTINGS_VARIABLE);
	const char *components = getenv(SETTINGS_COMPONENTS_VARIABLE);

	for (size_t i = 0; series && i < sizeof(settings) / sizeof(*settings); i++)
		setenv(settings[i].variable, settings[i].value[atoi(series) > 4], 1);
	if (components)
		setenv(OPEN_MPI COMPONENTS, components, 1);
}
