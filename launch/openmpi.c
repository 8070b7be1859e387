// SPDX-License-Identifier: GPL-2.0
/* The Open MPI that PATH leads to.  See openmpi.h. */
#include "launch/openmpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRIES		4	/* of a question */

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

/* The first line that a command prints, or "".  False: the command was killed, or the shell says so. */
static bool ask_once(const char *command, char *line, size_t room)
{
	FILE *output = popen(command, "re");
	int status = 0;

	if (!output || !fgets(line, room, output))
		*line = '\0';
	if (output)
		status = pclose(output);
	line[strcspn(line, "\n")] = '\0';
	return *line || !(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) > 128));
}

/* What kills mpirun, so that a job has to go on from a snapshot, may kill that which is asked, too. */
static void ask(const char *command, char *line, size_t room)
{
	for (int tries = 0; !ask_once(command, line, room) && tries < RETRIES; tries++)
		;
}

static char number[32];			/* the version found */

int openmpi_version(char *version, size_t room)
{
	const char *known = getenv(OPENMPI_VARIABLE);
	char line[100];

	if (known && *known) {
		snprintf(number, sizeof(number), "%s", known);
		unsetenv(OPENMPI_VARIABLE);
	} else if (openmpi_exists()) {
		ask("exec mpirun --version 2> /dev/null < /dev/null", line, sizeof(line));
		sscanf(line, "mpirun (Open MPI) %31[0-9.]", number);
	} else {
		ask("exec ompi_info --version 2> /dev/null < /dev/null", line, sizeof(line));
		sscanf(line, "Open MPI v%31[0-9.]", number);
	}
	snprintf(version, room, "%s", number);
	return atoi(number);
}

const char *openmpi_found(void)
{
	return *number ? number : NULL;
}
