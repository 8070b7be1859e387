// SPDX-License-Identifier: GPL-2.0
/*
 * cr_rank PROGRAM ARGUMENTS: what cr_mpirun has the launcher start in the place of PROGRAM.
 * The daemon of the node starts that; see cr_rank(1).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coordinator/wire.h"
#include "launch/proxy.h"
#include "launch/reach.h"
#include "launch/settings.h"
#include "launch/streams.h"
#include "report/report.h"

/* Without a daemon the rank runs as the launcher's child, and takes no part in checkpoints. */
static int run_directly(char **argv)
{
	unsetenv(WIRE_SECRET_VARIABLE);
	execvp(argv[0], argv);
	fprintf(stderr, "KCR: cannot start %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
	const char *job = getenv(REACH_JOB_VARIABLE);
	int daemon, status;

	streams_hold_own();
	report_set_program("KCR");
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("cr_rank (KCR) " KCR_VERSION);
		return 0;
	}
	if (argc < 2) {
		fputs("usage: cr_rank PROGRAM [ARGUMENT...] (see cr_mpirun(1))\n", stderr);
		return EINVAL;
	}
	if (!job || strlen(job) != REACH_JOB)
		return run_directly(argv + 1);
	settings_of_rank();
	daemon = reach_daemon(job);
	if (daemon < 0) {
		report_print(daemon);
		if (getenv(REACH_STEP_VARIABLE))	/* it would be nobody's */
			return report_exit_code(daemon);
		return run_directly(argv + 1);
	}
	status = proxy_run(daemon, argv + 1);
	if (status >= 0)
		proxy_end_like(status);
	report_print(status);
	return report_exit_code(status);
}
