// SPDX-License-Identifier: GPL-2.0
/* Parameters of Open MPI and PMIx: cr_mpirun's part.  See settings.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/srun.h"
#include "launch/settings.h"

#define DEFAULT_COMPONENTS	"SYSTEM_DEFAULT:USER_DEFAULT"	/* as Open MPI names its own and the user's */

/* Only those that a user may have chosen with a reason are worth a line. */
static const char *wanted(const struct command *c, const char *variable)
{
	if (strncmp(variable, SETTINGS_OPEN_MPI, strlen(SETTINGS_OPEN_MPI)))
		return NULL;
	return command_parameter(c, variable + strlen(SETTINGS_OPEN_MPI));
}

/*
 * mpirun 5.0.7 gives ranks PMIx's folder under the name of Open MPI's parameter, so that no
 * component outside of its library would be found, and PMIx the user's, of which that
 * complains: the proxy gives ranks the right one, and mpirun does not hear of it.
 */
static void set_components(const struct command *c)
{
	const char *given = command_parameter(c, SETTINGS_COMPONENTS);

	setenv(SETTINGS_COMPONENTS_VARIABLE, given ?: DEFAULT_COMPONENTS, 1);
	if (given)
		unsetenv(SETTINGS_OPEN_MPI SETTINGS_COMPONENTS);
}

/*
 * No memory for the topology that the launcher's daemons share with ranks.  Those on other
 * nodes take this only from their environment: 5.0.7 passes on an argument without effect.
 */
static void hide_topology(void)
{
	setenv("PMIX_MCA_pmix_hwloc_hole_kind", "none", 1);
	setenv("PRTE_MCA_prte_launch_agent", "env PMIX_MCA_pmix_hwloc_hole_kind=none prted", 0);
}

/* The like of --label, --error and --output. */
static bool marks_by_variable(const struct command *c)
{
	return c->options && *c->options && !strcmp(*c->options, JOB_BY_SRUN) &&
	       (getenv("SLURM_LABELIO") || getenv("SLURM_STDERRMODE") || getenv("SLURM_STDOUTMODE"));
}

/* Does the launcher do something with the ranks' output? */
static bool marks_output(const struct command *c)
{
	static const char *const names[] = {
		"error", "label", "merge-stderr-to-stdout", "output", "output-directory",
		"output-filename", "tag-output", "timestamp-output", "xml", "xml-file", "xterm",
	};
	static const char *const parameters[] = {
		"orte_tag_output", "orte_timestamp_output", "orte_output_filename", "orte_xml_output",
	};

	for (char **each = c->options; each && *each; each++)
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (command_is_option(*each, names[i]))
				return true;
	for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++)
		if (command_parameter(c, parameters[i]))
			return true;
	return getenv("PRTE_MCA_prte_output_filename") || marks_by_variable(c);
}

void settings_of_launcher(const struct command *c, int major)
{
	const char *variable, *ours;
	size_t length = 0;
	char names[160], series[16];

	for (size_t n = 0; settings_list(n, major, &variable, &ours); n++) {
		const char *value = wanted(c, variable);

		if (value && strcmp(value, ours))
			length += snprintf(names + length, sizeof(names) - length, "%s%s",
					   length ? ", " : "", variable + strlen(SETTINGS_OPEN_MPI));
	}
	if (length)
		fprintf(stderr, "KCR: your settings of %s have no effect: a job that can be "
			"checkpointed needs others\n", names);
	snprintf(series, sizeof(series), "%d", major);
	setenv(SETTINGS_VARIABLE, series, 1);
	unsetenv(SETTINGS_OUTPUT_VARIABLE);
	if (marks_output(c))
		setenv(SETTINGS_OUTPUT_VARIABLE, "launcher", 1);
	if (major > 4) {
		hide_topology();
		set_components(c);
	} else {
		setenv(SETTINGS_OPEN_MPI "rtc_hwloc_vmhole", "none", 1);
	}
}
