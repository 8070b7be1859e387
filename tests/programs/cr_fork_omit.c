// SPDX-License-Identifier: GPL-2.0
/*
 * A program linked with libcr_omit that forks all the time; each child lives for
 * some milliseconds.  The number of forks is written to `forks` every hundred.
 * kcr-build: -Wl,--no-as-needed -u cr_omit_link_me -l:libcr_omit.so.0
 */
#include <sys/wait.h>

#include "tests/programs/check.h"

static void tell(int forks)
{
	FILE *file = fopen("forks.tmp", "w");

	NEED(file && fprintf(file, "%d\n", forks) > 0 && !fclose(file));
	NEED(!rename("forks.tmp", "forks"));
}

int main(int argc, char **argv)
{
	int forks = 0, status;

	check_begin(argc, argv);
	check_ready();
	while (!check_gone()) {
		pid_t pid = fork();

		if (!pid) {
			usleep(forks % 4 * 1000);
			_exit(0);
		}
		NEED(pid > 0);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		if (++forks % 100 == 0)
			tell(forks);
	}
	return check_end();
}
