// SPDX-License-Identifier: GPL-2.0
/*
 * The two steps of a job under srun, see srun.h.  Without --overlap the daemons would keep the
 * ranks' step waiting for the processors; and as Slurm counts them, they have all those of the
 * allocation, which the ranks are bound to within.  So nothing that the user has asked of the
 * ranks' step may be asked of the daemons', whose children the ranks are.
 */
#include "launch/srun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/snapshot.h"
#include "job/srun.h"
#include "launch/allocation.h"
#include "launch/hosts.h"
#include "launch/openmpi.h"
#include "launch/reach.h"
#include "launch/srun_nodes.h"
#include "launch/srun_refused.h"
#include "report/report.h"

#define LAUNCHER	"--launcher"

bool srun_is_launcher(char *const *arguments)
{
	const char *first = *arguments, *name = "auto";

	if (first && command_is_option(first, LAUNCHER + 2))
		name = strchr(first, '=') ? strchr(first, '=') + 1 : arguments[1];
	if (name && !strcmp(name, "auto"))
		return !openmpi_exists() && getenv("SLURM_JOB_ID");
	return name && !strcmp(name, "srun");
}

/* ---- what srun is asked for ----------------------------------------------------------------- */

static int add_all(struct command *c, char *const *words)
{
	int err = 0;

	for (; words && *words && !err; words++) {
		err = srun_check_option(*words);
		if (!err)
			err = strings_add(&c->options, *words);
		if (!err)
			err = strings_add(&c->proxied, *words);
	}
	return err;
}

/* The options at *at, up to the program. */
static int take_options(struct command *c, char *const **at)
{
	while (**at && ***at == '-') {
		char **words = NULL;
		int got = command_take_own(c, at), err;

		if (!got)
			got = srun_take_option(at, &words);
		err = got < 0 ? got : add_all(c, words);
		strings_free(words);
		if (err)
			return err;
		if (got)
			continue;
		if (strcmp(**at, "--"))
			return report_fail(-EINVAL, "%s is no option of srun, or of a release that "
					   "cr_mpirun does not know", **at);
		++*at;
		break;
	}
	return 0;
}

static int take_program(struct command *c, char *const *at, char *const *inserted)
{
	int err = 0;

	if (!*at)
		return report_fail(-EINVAL, "there is no program to start");
	for (char *const *each = at; *each && !err; each++) {
		if (!strcmp(*each, ":"))
			return report_fail(-EOPNOTSUPP, "srun starts several programs (:) in several "
					   "steps, and all ranks must be in one");
		err = strings_add(&c->program, *each);
	}
	for (; *inserted && !err; inserted++)
		err = strings_add(&c->proxied, *inserted);
	for (; *at && !err; at++)
		err = strings_add(&c->proxied, *at);
	return err;
}

static bool is_given(const struct command *c, const char *name, const char *variable)
{
	for (char **each = c->options; each && *each; each++)
		if (srun_value(*each, name))
			return true;
	return variable && getenv(variable);
}

/* What srun answers itself, without a program. */
static bool only_asks(const struct command *c)
{
	return is_given(c, "help", NULL) || is_given(c, "usage", NULL) || is_given(c, "version", NULL);
}

int srun_split(struct command *c, char *const *arguments, char *const *inserted)
{
	char *const *at = arguments;
	int err;

	memset(c, 0, sizeof(*c));
	if (*at && command_is_option(*at, LAUNCHER + 2))
		at += !strchr(*at, '=') && at[1] ? 2 : 1;
	err = strings_add(&c->options, JOB_BY_SRUN);
	if (!err)
		err = take_options(c, &at);
	if (!err && only_asks(c))
		return 0;
	if (!err && !getenv("SLURM_JOB_ID"))
		err = report_fail(-EINVAL, "srun starts ranks that can be saved in an allocation that is "
				  "there already: run cr_mpirun in a script of sbatch, or below salloc");
	if (!err)
		err = srun_check_variables();
	if (!err)
		err = take_program(c, at, inserted);
	if (err)
		command_free(c);
	return err && report_error() != err ? report_errno(err, "no memory") : err;
}

/* ---- commands ------------------------------------------------------------------------------- */

static int add_words(char ***out, const char *const *words)
{
	int err = 0;

	for (; *words && !err; words++)
		err = strings_add(out, *words);
	return err;
}

/* How many of the lost nodes are of these, NAME:TASKS,…; of NULL, which nobody knows, all. */
static unsigned long count_lost(const char *all, const char *lost)
{
	unsigned long count = 0;
	char name[256];

	for (; !all && *lost; lost += strspn(lost, ","), count++)
		lost += strcspn(lost, ",");
	for (; all && *all; all += strspn(all, ",")) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(all, ":,"), all);
		count += hosts_has(lost, name);
		all += strcspn(all, ",");
	}
	return count;
}

/* The nodes of the allocation that are left. */
static unsigned long count_nodes(const char *lost)
{
	const char *nodes = getenv("SLURM_JOB_NUM_NODES") ?: getenv("SLURM_NNODES");
	unsigned long count = nodes ? strtoul(nodes, NULL, 10) : 1, gone = 0;
	char *all = lost && *lost ? allocation_hosts() : NULL;

	if (lost)
		gone = count_lost(all, lost);
	free(all);
	return count > gone ? count - gone : 1;
}

/* Else it would want as many nodes as the allocation has. */
static int limit_nodes(const struct command *c, const char *lost, char ***out)
{
	char nodes[40];

	if (!lost || is_given(c, "nodes", NULL))
		return 0;
	snprintf(nodes, sizeof(nodes), "--nodes=1-%lu", count_nodes(lost));
	return strings_add(out, nodes);
}

/* The options, which all begin with two dashes (job/srun.h), and cr_rank with the program. */
static int add_proxied(const struct command *c, const char *lost, char ***out)
{
	char **options = NULL, **word = c->proxied;
	int err = 0;

	for (; word && *word && !strncmp(*word, "--", 2) && !err; word++)
		err = strings_add(&options, *word);
	if (!err)
		err = srun_add_without(options ?: (char *[]){ NULL }, lost, out);
	for (; word && *word && !err; word++)
		err = strings_add(out, *word);
	strings_free(options);
	return err;
}

/* sbatch --export=NONE is about the script's environment, and srun would inherit it. */
static void export_all(void)
{
	const char *given = getenv("SRUN_EXPORT_ENV") ?: getenv("SLURM_EXPORT_ENV");

	setenv("SLURM_EXPORT_ENV", given && srun_exports_all(given) ? given : "ALL", 1);
	unsetenv("SRUN_EXPORT_ENV");	/* srun would prefer it */
}

int srun_for_ranks(const struct command *c, const char *lost, bool again, char ***out)
{
	/* srun takes only one of the two. */
	bool overlap = again && !is_given(c, "exclusive", "SLURM_EXCLUSIVE");
	int err = add_words(out, (const char *const[]){ "srun", "--quit-on-interrupt",
							overlap ? "--overlap" : NULL, NULL });

	if (!err && again && !is_given(c, "open-mode", "SLURM_OPEN_MODE"))
		err = strings_add(out, "--open-mode=append");	/* to what --output has from before */
	if (!err)
		err = limit_nodes(c, lost, out);
	if (!err && !is_given(c, "mpi", NULL))
		err = strings_add(out, "--mpi=pmix");
	/* A rank that fails ends the job, as under mpirun. */
	if (!err && !is_given(c, "kill-on-bad-exit", "SLURM_KILL_BAD_EXIT"))
		err = strings_add(out, "--kill-on-bad-exit=1");
	if (!err)
		err = add_proxied(c, lost, out);
	export_all();
	setenv(REACH_STEP_VARIABLE, "1", 1);
	return err;
}

int srun_for_daemons(const char *daemon, const char *lost, char ***out)
{
	unsigned long count = count_nodes(lost);
	char number[32], tasks[32];
	int err = strings_add(out, "srun");

	snprintf(number, sizeof(number), "--nodes=%lu", count);
	snprintf(tasks, sizeof(tasks), "--ntasks=%lu", count);
	if (!err)
		err = srun_add_without((char *[]){ NULL }, lost, out);
	return err ?: add_words(out, (const char *const[]){
		"--overlap", "--mpi=none", number, tasks, "--ntasks-per-node=1",
		"--distribution=block", "--cpu-bind=none", "--mem-bind=none", "--input=none",
		"--output=all", "--error=all", "--kill-on-bad-exit=0", "--wait=0",
		"--job-name=cr_node", daemon, REACH_STEP_ARGUMENT, NULL });
}

/* Where Slurm is, and which job this is; each release of srun has more of the others. */
static bool is_needed(const char *variable)
{
	static const char *const names[] = {
		"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_CONF", "SLURM_CONF_SERVER",
		"SLURM_JOBID", "SLURM_JOB_ID", "SLURM_JWT", "SLURM_NODE_ALIASES", "SLURM_STEPMGR",
		"SLURM_WORKING_CLUSTER",
	};
	size_t length = strcspn(variable, "=");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == length && !strncmp(variable, names[i], length))
			return true;
	return false;
}

void srun_forget_wishes(void)
{
	size_t left = 0;

	for (char **each = environ; *each; each++)
		if (is_needed(*each) || (strncmp(*each, "SLURM_", 6) && strncmp(*each, "SRUN_", 5)))
			environ[left++] = *each;
	environ[left] = NULL;
}
