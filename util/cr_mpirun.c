// SPDX-License-Identifier: GPL-2.0
/*
 * cr_mpirun: mpirun with checkpoints turned on.  Its arguments are mpirun's.
 * See cr_mpirun(1).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char **command = calloc(argc + 4, sizeof(*command));
	int count = 0;

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
