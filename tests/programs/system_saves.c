// SPDX-License-Identifier: GPL-2.0
/* Has itself saved by system(3) with the command that it is given, and says how that went. */
#include "check.h"

int main(int argc, char **argv)
{
	char command[1024];

	if (argc != 2)
		return 2;
	snprintf(command, sizeof(command), "%s %d", argv[1], getpid());
	printf("status %d\n", system(command));
	return 0;
}
