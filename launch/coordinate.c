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
#include "launch/allocation.h"
#include "launch/command.h"
#include "launch/hosts.h"
#include "launch/launcher.h"
#include "launch/options.h"
#include "launch/output.h"
#include "launch/reach.h"
#include "launch/recovery.h"
#include "launch/settings.h"
#include "launch/show.h"
#include "launch/srun.h"
#include "launch/watch.h"
#include "proc/clock.h"
#include "proc/spawn.h"
#include "report/report.h"

#define START_S		300		/* srun may have to wait for Slurm */
#define IMAGES		24		/* times as long for a rank to read its image, perhaps from a slow disk */
#define LATE_S		120		/* for large ranks to end, or a daemon to write to a slow disk */
#define LOADING_S	600		/* for a node's disk or server that does not answer for a while */
#define ROOT_ROOM	1024		/* of all addresses of this machine */
#define PROXY		"cr_rank"
#define DAEMON		"cr_node"

/* ---- the coordinator ------------------------------------------------------------------------ */

/*
 * The daemons' own time.  A node that the job goes on without has ended its ranks before: these
 * and the ones that take their place would write the same files.
 */
static void tell_silence(const struct options *o)
{
	char text[16];

	unsetenv(WIRE_SILENCE_VARIABLE);
	if (!o->silence_s)
		return;
	snprintf(text, sizeof(text), "%u", o->silence_s - (o->recoveries ? (o->silence_s + 2) / 3 : 0));
	setenv(WIRE_SILENCE_VARIABLE, text, 1);
}

static int begin_root(const struct command *c, const struct options *o, const char *version,
		      int *job_socket)
{
	static char address[ROOT_ROOM], secret[WIRE_SECRET + 1];
	const struct root_settings settings = {
		.interfaces = o->interfaces, .local = o->local, .stand_still = o->stand_still,
		.path = o->path, .keep = o->keep,
		.incremental = o->incremental, .arguments = o->arguments,
		.interval_ns = o->interval_ns, .mttf_ns = o->mttf_ns, .silence_s = o->silence_s,
		.answer_s = o->answer_s, .loading_s = LOADING_S,
		.launch = job_socket,
	};
	struct snapshot *job;
	int err;

	job = job_describe(c->options, c->program, version);
	err = job ? root_start(job, &settings, address, sizeof(address), secret) : -ENOMEM;
	if (err)
		return err;
	setenv(WIRE_ROOT_VARIABLE, address, 1);
	setenv(WIRE_SECRET_VARIABLE, secret, 1);
	tell_silence(o);
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
static int begin(const struct command *c, const struct options *o, const char *version, int *job)
{
	int err = o->signal ? trigger_start(o->signal) : 0;

	if (!err)
		err = begin_root(c, o, version, job);
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

/* mpirun passes these on to all nodes; only the names are in its arguments. */
static const char *const variables[] = {
	WIRE_ROOT_VARIABLE, WIRE_SECRET_VARIABLE, WIRE_SILENCE_VARIABLE, REACH_JOB_VARIABLE,
	RELAUNCH_VARIABLE, RELAUNCH_ID_VARIABLE,
	SETTINGS_VARIABLE, SETTINGS_COMPONENTS_VARIABLE, SETTINGS_OUTPUT_VARIABLE,
};

#define VARIABLES	(sizeof(variables) / sizeof(*variables))

/* Adds the user's own names, from all that give some; has the user none, nothing. */
static void write_users(const struct command *c, const char *separator, FILE *out)
{
	const char *text = command_parameter(c, COMMAND_VARIABLES);
	size_t length = strlen(COMMAND_VARIABLES "=");
	bool any = false;

	for (char **each = c->settings; each && *each; each++)
		if (!strncmp(*each, COMMAND_VARIABLES "=", length)) {
			fprintf(out, "%s%s", any ? separator : "", *each + length);
			any = true;
		}
	if (!any && text)
		fputs(text, out);
}

/* Adds ours to the user's list, beside which mpirun of 4.1 takes no -x. */
static int list_variables(const struct command *c)
{
	const char *separator = command_parameter(c, COMMAND_VARIABLES "_delimiter");
	char *list = NULL;
	size_t size;
	FILE *out = open_memstream(&list, &size);
	int err = out ? 0 : -ENOMEM;

	if (!separator || !*separator)
		separator = ";";
	if (!err)
		write_users(c, separator, out);
	for (size_t i = 0; i < VARIABLES && !err; i++)
		if (getenv(variables[i]))
			fprintf(out, "%s%s", separator, variables[i]);
	if (!err && (fclose(out) || setenv("OMPI_MCA_" COMMAND_VARIABLES, list, 1)))
		err = -ENOMEM;
	free(list);
	return err;
}

static int add_variables(const struct command *c, char ***command)
{
	int err = 0;

	if (c->major <= 4 && command_parameter(c, COMMAND_VARIABLES))
		return list_variables(c);
	for (size_t i = 0; i < VARIABLES && !err; i++)
		if (getenv(variables[i])) {
			err = strings_add(command, "-x");
			err = err ?: strings_add(command, variables[i]);
		}
	return err;
}

/* --version, --help, or what mpirun has to complain of: mpirun itself does it. */
static int become_mpirun(char **command)
{
	launcher_release_signals();
	execvp(command[0], command);
	return report_errno(-errno, "cannot start %s", command[0]);
}

/* Were there ranks before?  The processors of a lost node's step are free once Slurm knows. */
static bool is_again(const struct recovery *recovery)
{
	return recovery->used || getenv(RELAUNCH_VARIABLE);
}

static int build_mpirun(const struct command *c, bool again, char ***command)
{
	int err = strings_add(command, "mpirun");

	if (again)
		setenv("SLURM_OVERLAP", "1", 0);	/* for mpirun's own srun */
	if (!err && c->program)
		err = add_variables(c, command);
	for (char **each = c->proxied; each && *each && !err; each++)
		err = strings_add(command, *each);
	return err;
}

/* They end with this process.  srun tells the user itself what it cannot do. */
static int start_daemons(const char *lost)
{
	char **command = NULL, *daemon = spawn_beside(DAEMON);
	int err = daemon ? srun_for_daemons(daemon, lost, &command) : -ENOMEM;
	struct launcher step;

	if (!err)
		err = launcher_start_aside(&step, command);
	strings_free(command);
	free(daemon);
	return err;
}

static int run(const struct command *c, bool srun, int job, struct recovery *recovery)
{
	char **command = NULL;
	int err = srun ? srun_for_ranks(c, recovery->lost, is_again(recovery), &command) :
			 build_mpirun(c, is_again(recovery), &command);

	if (!err && srun && job >= 0)
		err = start_daemons(recovery->lost);
	if (!err)
		err = c->program ? watch_job(command, job, recovery) : become_mpirun(command);
	strings_free(command);
	return err == -ENOMEM ? report_errno(err, "cannot start the ranks") : err;
}

static int start(const struct command *c, bool srun, const struct options *o, const char *version,
		 struct recovery *recovery)
{
	int job = -1;

	if (c->program && !begin(c, o, version, &job))
		settings_of_launcher(c, atoi(version));
	if (job < 0)
		recovery->most = 0;
	return run(c, srun, job, recovery);
}

/* In the place of this process, with the arguments that it was given, but never lazily. */
static int recover(const struct recovery *recovery, char *const *arguments)
{
	char **command = NULL;
	int err = strings_add(&command, "cr_mpirun");

	for (; *arguments && !err; arguments++)
		if (!relaunch_is_lazy(arguments))
			err = strings_add(&command, *arguments);
	return err ?: recovery_go(recovery, command);
}

/* srun's arguments are read as such from the first on. */
static int check_launcher(const struct command *c, bool srun)
{
	const char *name = command_own(c, "launcher");

	if (name && strcmp(name, "mpirun") && strcmp(name, "auto") && strcmp(name, "srun"))
		return report_fail(-EINVAL, "--launcher is mpirun, srun or auto, not %s", name);
	if (name && (srun || !strcmp(name, "srun")))
		return report_fail(-EINVAL, "--launcher=%s must be the first argument", name);
	if (srun && command_own(c, "spares"))
		return report_fail(-EINVAL, "--spares is not for srun, which has the nodes of its "
				   "allocation to spare that --nodes leaves");
	return 0;
}

/* Are any of the lost nodes used again, as they answer within so many seconds? */
static bool await_node(struct recovery *recovery, unsigned int seconds)
{
	uint64_t end = now_ns() + seconds * 1000000000ull;

	while (!recovery_take_back(recovery)) {
		if (now_ns() >= end)
			return false;
		sleep(RELAUNCH_PAUSE_S);
	}
	return true;
}

static int limit_hosts(struct command *c, struct recovery *recovery, unsigned int spares)
{
	int err = hosts_limit(c, recovery->lost, spares);

	if (err != -EINVAL || !recovery->lost)		/* EINVAL: no host is left */
		return err;
	if (recovery->nodes)
		show_say(NULL, "%s: waiting for one that answers", report_message());
	if (!await_node(recovery, recovery->nodes ? recovery->start_s : 0))
		return err;
	report_clear();
	return hosts_limit(c, recovery->lost, spares);
}

int coordinate(char *const *arguments, const char *version)
{
	/* Nodes have the same release at the same place. */
	char *inserted[] = { spawn_beside(PROXY), NULL };
	struct recovery recovery;
	struct options options = { 0 };
	struct command c;
	const bool srun = srun_is_launcher(arguments);
	int err = !inserted[0] ? report_fail(-ENOMEM, "no memory") :
		  srun ? srun_split(&c, arguments, inserted) :
			 command_split(&c, arguments, atoi(version), inserted);

	if (err)
		return err;
	err = check_launcher(&c, srun);
	if (!err)
		err = options_read(&options, &c);
	recovery_init(&recovery, options.recoveries, options.from_start);
	recovery.exits = options.exits;
	recovery.silence_s = options.recoveries ? options.silence_s : 0;
	recovery.late_s = recovery.silence_s + LATE_S;
	recovery.start_s = options.start_s ?: srun ? 0 : START_S;
	recovery.loading_s = recovery.start_s * IMAGES;
	if (!err && is_again(&recovery))
		err = output_keep(&c, recovery.used);
	if (!err && recovery.lost)
		allocation_renew();
	if (!err && !srun)
		err = limit_hosts(&c, &recovery, options.spares);
	if (!err) {
		launcher_hold_signals(options.signal);
		err = start(&c, srun, &options, version, &recovery);
	}
	if (recovery.due)
		err = recover(&recovery, arguments);
	recovery_free(&recovery);
	options_free(&options);
	command_free(&c);
	free(inserted[0]);
	return err;
}
