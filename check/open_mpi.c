// SPDX-License-Identifier: GPL-2.0
/* Open MPI and KCR's components for it; see check.h. */
#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/command.h"

#define ANSWER_ROOM	(1 << 20)
#define LIMIT_S		60

/* Has "mca:FRAMEWORK:cr:version" a line in what ompi_info says? */
static const char *missing_from(const char *listing)
{
	static const char *const components[] = { "btl", "hook", "osc" };
	char line[32];

	for (size_t i = 0; i < sizeof(components) / sizeof(*components); i++) {
		snprintf(line, sizeof(line), "mca:%s:cr:version:", components[i]);
		if (!strstr(listing, line))
			return components[i];
	}
	return NULL;
}

void check_open_mpi(struct check_answer *answer)
{
	const char *const argv[] = { "ompi_info", "--parsable", NULL };
	char *listing = malloc(ANSWER_ROOM), *version;
	int status = listing ? command_run(argv, LIMIT_S, listing, ANSWER_ROOM) : -1;
	const char *missing;

	if (status == 127) {
		check_answer(answer, CHECK_NOTE, "", "Open MPI is not installed (no ompi_info in PATH)");
	} else if (status) {
		check_answer(answer, CHECK_FAILED, "run ompi_info to see why", "ompi_info failed");
	} else {
		version = strstr(listing, "ompi:version:full:");
		version = version ? version + strlen("ompi:version:full:") : listing;
		missing = missing_from(listing);
		version[strcspn(version, "\n")] = '\0';
		if (missing)
			check_answer(answer, CHECK_NOTE, "install KCR's components into the folder that "
				     "\"ompi_info --path pkglibdir\" names (make install)",
				     "Open MPI %s lacks the component %s/cr: its jobs cannot be saved",
				     version, missing);
		else
			check_answer(answer, CHECK_OK, "", "Open MPI %s has the components btl/cr, "
				     "hook/cr and osc/cr", version);
	}
	free(listing);
}
