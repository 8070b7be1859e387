// SPDX-License-Identifier: GPL-2.0
/*
 * cr_mpirun: an MPI job that can be checkpointed.  Its arguments are mpirun's, which is a child
 * of this process.  See cr_mpirun(1).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/relaunch.h"
#include "job/snapshot.h"
#include "launch/coordinate.h"
#include "launch/openmpi.h"
#include "launch/streams.h"
#include "report/report.h"

#define VERSION_ROOM	32

/* An mpirun that is missing is reported when it is to be started. */
static int check_version(int major, const char *version)
{
	if (major == 4 || major == 5)
		return 0;
	if (!major && !openmpi_exists())
		return 0;
	return report_fail(-EPROTONOSUPPORT, "the mpirun in PATH is %s%s: jobs of Open MPI 4.1 and 5 can be "
			   "saved; use mpirun itself for a job that is not to be saved",
			   major ? "that of Open MPI " : "not Open MPI's", version);
}

/* Did another series of Open MPI save the job?  Its libraries are in the ranks' memory. */
static int check_restart(const char *dir, int major, const char *version)
{
	struct snapshot *s;
	int err = snapshot_load(dir, &s, NULL), saved;

	for (int tries = 0; err && getenv(RELAUNCH_RECOVERIES) && tries < RELAUNCH_RETRIES; tries++) {
		fprintf(stderr, "KCR: %s: it is tried again\n", report_message() ?: "no memory");
		report_clear();
		sleep(RELAUNCH_PAUSE_S);
		err = snapshot_load(dir, &s, NULL);
	}
	if (err)
		return err;
	err = relaunch_check(dir, s);
	saved = atoi(s->openmpi);
	if (!err && saved != major && saved && major)
		err = report_fail(-EPROTONOSUPPORT, "the job was saved with Open MPI %s, but mpirun is "
				  "that of %s: put the mpirun of Open MPI %d first in PATH",
				  s->openmpi, version, saved);
	snapshot_free(s);
	return err;
}

int main(int argc, char **argv)
{
	const char *restarted = getenv(RELAUNCH_VARIABLE);
	char version[VERSION_ROOM];
	int major, status;

	(void)argc;
	streams_hold_own();
	major = openmpi_version(version, sizeof(version));
	report_set_program("cr_mpirun");
	status = check_version(major, version);
	if (!status && restarted)
		status = check_restart(restarted, major, version);
	if (!status)
		status = coordinate(argv + 1, version);
	if (status < 0) {
		report_print(status);
		return status == -ENOENT ? 127 : 126;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
