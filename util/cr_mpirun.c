// SPDX-License-Identifier: GPL-2.0
/*
 * cr_mpirun: mpirun with checkpoints turned on.  Its arguments are mpirun's.
 * See cr_mpirun(1).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Does mpirun belong to an Open MPI that our components work with?  Others would run the
 * job, and nobody would hear before the first checkpoint that it cannot be saved.
 */
static bool is_known(void)
{
	FILE *output = popen("mpirun --version 2> /dev/null < /dev/null", "re");
	char line[100] = "";
	int major = 0;

	if (!output)
		return true;
	if (fgets(line, sizeof(line), output))
		sscanf(line, "mpirun (Open MPI) %d", &major);
	pclose(output);
	if (major < 5)
		return true;
	fprintf(stderr, "cr_mpirun: jobs of Open MPI %d cannot be saved yet: "
		"use Open MPI 4.1, or mpirun for a job that is not to be saved\n", major);
	return false;
}

int main(int argc, char **argv)
{
	char **command;
	int count = 0;

	if (!is_known())
		return 126;
	command = calloc(argc + 4, sizeof(*command));
	if (!command)
		return ENOMEM;
	command[count++] = "mpirun";
	command[count++] = "--mca";
	command[count++] = "schizo_cr_enable";
	command[count++] = "1";
	for (int i = 1; i < argc; i++)
		command[count++] = argv[i];
	execvp(command[0], command);
	fprintf(stderr, "cr_mpirun: cannot start mpirun: %s\n", strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
