// SPDX-License-Identifier: GPL-2.0
/* The Open MPI that PATH leads to.  See openmpi.h. */
#include "launch/openmpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool openmpi_exists(void)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];

	while (at) {
		size_t length = strcspn(at, ":");

		snprintf(path, sizeof(path), "%.*s/mpirun", (int)length, at);
		if (!access(path, X_OK))
			return true;
		at = at[length] ? at + length + 1 : NULL;
	}
	return false;
}

/* The first line that a command prints, or "". */
static void ask(const char *command, char *line, size_t room)
{
	FILE *output = popen(command, "re");

	if (!output || !fgets(line, room, output))
		*line = '\0';
	if (output)
		pclose(output);
	line[strcspn(line, "\n")] = '\0';
}

int openmpi_version(char *version, size_t room)
{
	char line[100], number[32] = "";

	if (openmpi_exists()) {
		ask("mpirun --version 2> /dev/null < /dev/null", line, sizeof(line));
		sscanf(line, "mpirun (Open MPI) %31[0-9.]", number);
	} else {
		ask("ompi_info --version 2> /dev/null < /dev/null", line, sizeof(line));
		sscanf(line, "Open MPI v%31[0-9.]", number);
	}
	snprintf(version, room, "%s", number);
	return atoi(number);
}

void openmpi_components(char *path, size_t room)
{
	char line[PATH_MAX + 32], *folder;

	ask("ompi_info --path pkglibdir --parsable 2> /dev/null < /dev/null", line, sizeof(line));
	folder = strstr(line, ":pkglibdir:");
	snprintf(path, room, "%s", folder ? folder + strlen(":pkglibdir:") : "");
}
