// SPDX-License-Identifier: GPL-2.0
/* How a job was started.  See describe.h. */
#include "job/describe.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/identity.h"
#include "job/relaunch.h"
#include "proc/proc.h"

static bool worth_keeping(const char *assignment)
{
	return !strncmp(assignment, "OMPI_MCA_", 9) || !strncmp(assignment, "PMIX_MCA_", 9) ||
	       !strncmp(assignment, "PRTE_MCA_", 9);	/* of Open MPI 5's launcher */
}

static int add_all(char ***vector, char *const *words)
{
	int err = 0;

	for (; words && *words && !err; words++)
		err = strings_add(vector, *words);
	return err;
}

static int describe_restart(struct snapshot *job, const char *dir, char *const *options)
{
	struct snapshot *old;
	int err = snapshot_load(dir, &old, NULL);

	if (err)
		return err;
	err = relaunch_check(dir, old) ?: relaunch_options(dir, old, options, &job->options);
	job->interval = old->interval;
	if (!err)
		err = add_all(&job->program, old->program);
	snapshot_free(old);
	return err;
}

static int describe_command(struct snapshot *job, char *const *options, char *const *program)
{
	const char *restarted = getenv(RELAUNCH_VARIABLE);
	int err;

	job->id = identity_own();
	if (restarted)
		return describe_restart(job, restarted, options);
	err = add_all(&job->options, options);
	return err ?: add_all(&job->program, program);
}

/* As the user gave it: mpirun has added its options to `environ` by now. */
static int describe_environment(struct snapshot *job)
{
	char **given = proc_environment(getpid());
	int err = given ? 0 : -ENOMEM;

	for (char **each = given; each && *each && !err; each++)
		if (worth_keeping(*each))
			err = strings_add(&job->environment, *each);
	free(given);
	return err;
}

struct snapshot *job_describe(char *const *options, char *const *program, const char *openmpi)
{
	struct snapshot *job = calloc(1, sizeof(*job));
	char cwd[PATH_MAX];
	int err = job && getcwd(cwd, sizeof(cwd)) ? describe_command(job, options, program) :
						   -ENOMEM;

	if (!err)
		err = describe_environment(job);
	if (err) {
		snapshot_free(job);
		return NULL;
	}
	job->cwd = strdup(cwd);
	job->openmpi = strdup(openmpi);
	job->kcr = strdup(KCR_VERSION);
	return job;
}
