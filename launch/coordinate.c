// SPDX-License-Identifier: GPL-2.0
/* The coordinator beside its launcher.  See coordinate.h. */
#include "launch/coordinate.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "job/coordinator/root.h"
#include "job/coordinator/wire.h"
#include "job/describe.h"
#include "job/relaunch.h"
#include "launch/command.h"
#include "launch/launcher.h"
#include "launch/reach.h"
#include "launch/settings.h"
#include "launch/watch.h"
#include "proc/proc.h"
#include "proc/signal_name.h"
#include "report/report.h"

#define ROOT_ROOM	1024		/* of all addresses of this machine */
#define PROXY		"cr_rank"

/* ---- parameters: those that schizo/cr has with Open MPI 4.1 --------------------------------- */

static const char *text_of(const struct command *c, const char *name)
{
	const char *value = command_parameter(c, name);

	return value && *value ? value : NULL;
}

/* The number of the signal that saves the job, 0: none; -EINVAL with a message. */
static int trigger_of(const struct command *c, int *keep)
{
	const char *name = text_of(c, "schizo_cr_signal"), *count = text_of(c, "schizo_cr_keep");
	int number = name ? signal_number(name) : 0;

	*keep = count ? atoi(count) : 1;
	if (name && number <= 0)
		return report_fail(-EINVAL, "schizo_cr_signal: there is no signal %s", name);
	if (name && *keep < 1)
		return report_fail(-EINVAL, "schizo_cr_keep is a number from 1 on");
	return number;
}

static int begin_trigger(const struct command *c, int number, int keep)
{
	const char *file = text_of(c, "schizo_cr_file");
	char name[32];

	if (!number)
		return 0;
	snprintf(name, sizeof(name), "context.%d", getpid());
	return trigger_start(number, file ?: name, keep);
}

static int begin_root(const struct command *c, const char *version, int *job_socket)
{
	static char address[ROOT_ROOM], secret[WIRE_SECRET + 1];
	const char *still = text_of(c, "schizo_cr_snapshot");
	const struct root_settings settings = {
		.interfaces = text_of(c, "schizo_cr_if_include"),
		.local = text_of(c, "schizo_cr_local"),
		.stand_still = still && !atoi(still),
		.launch = job_socket,
	};
	struct snapshot *job;
	int err = 0;

	if (settings.local && *settings.local != '/')
		return report_fail(-EINVAL, "schizo_cr_local is a path from / on, not %s",
				   settings.local);
	job = job_describe(c->options, c->program, version);
	err = job ? root_start(job, &settings, address, sizeof(address), secret) : -ENOMEM;
	if (err)
		return err;
	setenv(WIRE_ROOT_VARIABLE, address, 1);
	setenv(WIRE_SECRET_VARIABLE, secret, 1);
	return 0;
}

static int name_job(void)
{
	char name[REACH_JOB + 1];
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(name, sizeof(name), "%016" PRIx64, number);
	setenv(REACH_JOB_VARIABLE, name, 1);
	return 0;
}

/* 0, and *job for watch_job(), or what the user has been told: the job then runs without. */
static int begin(const struct command *c, const char *version, int *job)
{
	int keep, number = trigger_of(c, &keep), err = number < 0 ? number : 0;

	launcher_hold_signals(number > 0 ? number : 0);
	if (!err)
		err = begin_trigger(c, number, keep);
	if (!err)
		err = begin_root(c, version, job);
	if (!err)
		err = name_job();
	if (!err)
		return 0;
	fprintf(stderr, "KCR: this job cannot be checkpointed: %s\n",
		report_message() ?: strerror(-err));
	report_clear();
	unsetenv(WIRE_ROOT_VARIABLE);
	unsetenv(REACH_JOB_VARIABLE);
	if (*job >= 0)
		close(*job);
	*job = -1;
	return err;
}

/* ---- the launcher --------------------------------------------------------------------------- */

/* The proxy's path: nodes have the same release at the same place.  malloc()ed or NULL. */
static char *proxy_path(void)
{
	char path[PATH_MAX], *text;
	ssize_t length = proc_link(PROC_SELF, "exe", path, sizeof(path));
	char *slash = length > 0 ? strrchr(path, '/') : NULL;

	if (!slash || asprintf(&text, "%.*s/" PROXY, (int)(slash - path), path) < 0)
		return NULL;
	return text;
}

/* mpirun passes these on to all nodes; only the names are in its arguments. */
static int add_variables(char ***command)
{
	static const char *const names[] = {
		WIRE_ROOT_VARIABLE, WIRE_SECRET_VARIABLE, REACH_JOB_VARIABLE, RELAUNCH_VARIABLE,
		SETTINGS_VARIABLE, SETTINGS_COMPONENTS_VARIABLE, SETTINGS_OUTPUT_VARIABLE,
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !err; i++)
		if (getenv(names[i])) {
			err = strings_add(command, "-x");
			err = err ?: strings_add(command, names[i]);
		}
	return err;
}

/* --version, --help, or what mpirun has to complain of: mpirun itself does it. */
static int become_mpirun(char **command)
{
	execvp(command[0], command);
	return report_errno(-errno, "cannot start %s", command[0]);
}

static int run(const struct command *c, int job)
{
	char **command = NULL;
	int err = strings_add(&command, "mpirun");

	if (!err && c->program)
		err = add_variables(&command);
	for (char **each = c->proxied; each && *each && !err; each++)
		err = strings_add(&command, *each);
	if (err)
		report_errno(err, "cannot start mpirun");
	else
		err = c->program ? watch_job(command, job) : become_mpirun(command);
	strings_free(command);
	return err;
}

int coordinate(char *const *arguments, const char *version)
{
	char *inserted[] = { proxy_path(), NULL };
	struct command c;
	int job = -1, err = inserted[0] ? command_split(&c, arguments, atoi(version), inserted) :
				report_fail(-ENOMEM, "no memory");

	if (err)
		return err;
	if (c.program && !begin(&c, version, &job))
		settings_of_launcher(&c, atoi(version));
	err = run(&c, job);
	command_free(&c);
	free(inserted[0]);
	return err;
}
