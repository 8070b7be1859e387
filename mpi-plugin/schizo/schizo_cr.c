// SPDX-License-Identifier: GPL-2.0
/*
 * The component schizo/cr: starts the coordinator in mpirun and a daemon thread
 * in mpirun and every orted, and passes their addresses to the ranks.  It does
 * nothing unless started with `--mca schizo_cr_enable 1`.
 */
#include "orte_config.h"

#include "opal/util/opal_environ.h"
#include "orte/constants.h"
#include "orte/mca/mca.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/runtime/orte_globals.h"
#include "orte/util/proc_info.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coordinator/node.h"
#include "job/coordinator/root.h"
#include "job/coordinator/wire.h"
#include "job/relaunch.h"
#include "job/snapshot.h"
#include "proc/proc.h"
#include "proc/signal_name.h"
#include "report/report.h"

#define PRIORITY	90
#define ROOT_ROOM	1024		/* of all addresses of mpirun's machine */

static int enable, keep = 1, snapshot = 1;
static char *signal_name, *file, *local, *interfaces;
static char root_address[ROOT_ROOM], secret[WIRE_SECRET + 1];
static char node_name[NODE_NAME_MAX];

/* Settings that make ranks checkpointable, besides btl/cr itself. */
static const char *const rank_settings[][2] = {
	{ "OMPI_MCA_pml", "ob1" },
	{ "OMPI_MCA_btl", "cr,self" },
	{ "OMPI_MCA_mpi_add_procs_cutoff", "1000000" },	/* all added at once: no look-ups after a restart */
	{ "OMPI_MCA_coll", "^sm,han,adapt,monitoring,hcoll,ucc,portals4" },
	{ "OMPI_MCA_osc", "pt2pt,cr" },	/* cr only reports what is missing */
	{ "OMPI_MCA_sharedfp", "^sm" },
};

/* ---- the job's description in a snapshot ---------------------------------------------- */

static bool worth_keeping(const char *assignment)
{
	return !strncmp(assignment, "OMPI_MCA_", 9) || !strncmp(assignment, "PMIX_MCA_", 9);
}

static int describe_command(struct snapshot *job, opal_cmd_line_t *line)
{
	int tail_count = 0, err = 0;
	char **tail = NULL;

	if (!line)
		return -EINVAL;
	opal_cmd_line_get_tail(line, &tail_count, &tail);
	for (int i = 1; i < line->lcl_argc - tail_count && !err; i++)
		err = strings_add(&job->options, line->lcl_argv[i]);
	for (int i = 0; i < tail_count && !err; i++)
		err = strings_add(&job->program, tail[i]);
	return err;
}

/* A restarted job keeps its original program and counts its snapshots on. */
static int describe_restart(struct snapshot *job, const char *dir)
{
	char **options = NULL;
	struct snapshot *old;
	int err = snapshot_load(dir, &old, NULL);

	if (err)
		return err;
	err = relaunch_options(dir, old->options, job->options, &options);
	strings_free(job->options);
	job->options = options;
	strings_free(job->program);
	job->program = NULL;
	job->interval = old->interval;
	for (char **each = old->program; each && *each && !err; each++)
		err = strings_add(&job->program, *each);
	snapshot_free(old);
	return err;
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

static struct snapshot *describe_job(opal_cmd_line_t *line)
{
	struct snapshot *job = calloc(1, sizeof(*job));
	const char *restarted = getenv(RELAUNCH_VARIABLE);
	char cwd[PATH_MAX], version[32];
	int err = job && getcwd(cwd, sizeof(cwd)) ? describe_command(job, line) : -ENOMEM;

	if (!err && restarted)
		err = describe_restart(job, restarted);
	if (!err)
		err = describe_environment(job);
	if (err) {
		snapshot_free(job);
		return NULL;
	}
	job->cwd = strdup(cwd);
	snprintf(version, sizeof(version), "%d.%d.%d", ORTE_MAJOR_VERSION, ORTE_MINOR_VERSION,
		 ORTE_RELEASE_VERSION);
	job->openmpi = strdup(version);
	job->kcr = strdup(KCR_VERSION);
	return job;
}

/* ---- in mpirun ------------------------------------------------------------------------ */

/* Sets up the signal that saves the job, if the user has named one. */
static int begin_trigger(void)
{
	char name[32];
	int number;

	if (!signal_name || !*signal_name)
		return 0;
	number = signal_number(signal_name);
	if (number <= 0 || keep < 1)
		return report_fail(-EINVAL, number <= 0 ? "schizo_cr_signal: there is no signal %s" :
				   "schizo_cr_keep is a number from 1 on", signal_name);
	snprintf(name, sizeof(name), "context.%d", getpid());
	return trigger_start(number, file && *file ? file : name, keep);
}

static int begin_root(opal_cmd_line_t *line)
{
	struct snapshot *job = describe_job(line);
	const struct root_settings settings = {
		.interfaces = interfaces, .local = local && *local ? local : NULL,
		.stand_still = !snapshot,
	};
	int err = job ? begin_trigger() : -ENOMEM;

	if (!err && settings.local && *settings.local != '/')
		err = report_fail(-EINVAL, "schizo_cr_local is a path from / on, not %s", local);
	if (!err)
		err = root_start(job, &settings, root_address, sizeof(root_address), secret);
	if (err) {
		fprintf(stderr, "KCR: this job cannot be checkpointed: %s\n",
			report_message() ? report_message() : strerror(-err));
		*root_address = '\0';
	}
	return err;
}

/* What the user wants this parameter to be, in either form; NULL: whatever is the default. */
static const char *wanted_by_user(opal_cmd_line_t *line, const char *variable)
{
	static const char *const options[] = { "mca", "gmca" };
	const char *name = variable + strlen("OMPI_MCA_");

	for (size_t i = 0; line && i < sizeof(options) / sizeof(*options); i++)
		for (int n = opal_cmd_line_get_ninsts(line, options[i]); n-- > 0;)
			if (!strcmp(opal_cmd_line_get_param(line, options[i], n, 0), name))
				return opal_cmd_line_get_param(line, options[i], n, 1);
	return getenv(variable);
}

/* Says once which settings of the user have no effect. */
static void tell_overridden(opal_cmd_line_t *line)
{
	static bool told;
	size_t length = 0;
	char names[160];

	for (size_t i = 0; i < sizeof(rank_settings) / sizeof(*rank_settings) && !told; i++) {
		const char *wanted = wanted_by_user(line, rank_settings[i][0]);

		if (wanted && strcmp(wanted, rank_settings[i][1]))
			length += snprintf(names + length, sizeof(names) - length, "%s%s",
					   length ? ", " : "", rank_settings[i][0] +
					   strlen("OMPI_MCA_"));
	}
	told = true;
	if (length)
		fprintf(stderr, "KCR: your settings of %s have no effect: a job that can be "
			"checkpointed needs others\n", names);
}

/* The environment that all ranks get; once per program of the command line. */
static int parse_env(char *path, opal_cmd_line_t *line, char **source, char ***out)
{
	const char *restarted = getenv(RELAUNCH_VARIABLE);

	(void)path;
	(void)source;
	if (!*root_address && begin_root(line))
		return ORTE_SUCCESS;
	tell_overridden(line);
	for (size_t i = 0; i < sizeof(rank_settings) / sizeof(*rank_settings); i++)
		opal_setenv(rank_settings[i][0], rank_settings[i][1], true, out);
	opal_setenv(WIRE_ROOT_VARIABLE, root_address, true, out);
	opal_setenv(WIRE_SECRET_VARIABLE, secret, true, out);
	if (restarted)
		opal_setenv(RELAUNCH_VARIABLE, restarted, true, out);
	return ORTE_SUCCESS;
}

/* ---- in mpirun and the orteds --------------------------------------------------------- */

static const char *value_of(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static int begin_node(orte_app_context_t *app)
{
	const char *address = value_of(app->env, WIRE_ROOT_VARIABLE);
	const char *word = value_of(app->env, WIRE_SECRET_VARIABLE);

	if (!address || !word || strlen(word) != WIRE_SECRET)
		return -EINVAL;
	/* mpirun's own daemon uses the last one, the loopback address. */
	if (*root_address && strrchr(address, ','))
		address = strrchr(address, ',') + 1;
	return node_start(address, word, orte_process_info.nodename, node_name);
}

/* Just before a program's ranks of this node are started. */
static int setup_fork(orte_job_t *job, orte_app_context_t *app)
{
	int err = *node_name ? 0 : begin_node(app);

	(void)job;
	if (err) {
		fprintf(stderr, "KCR: the ranks on %s cannot be checkpointed: %s\n",
			orte_process_info.nodename,
			report_error() == err ? report_message() : strerror(-err));
		*node_name = '\0';
	} else {
		opal_setenv(WIRE_DAEMON_VARIABLE, node_name, true, &app->env);
	}
	/* Ranks do not need it, and images and printed environments must not contain it. */
	opal_unsetenv(WIRE_SECRET_VARIABLE, &app->env);
	return ORTE_ERR_TAKE_NEXT_OPTION;
}

static int init(void)
{
	return ORTE_SUCCESS;
}

static void finalize(void)
{
}

static orte_schizo_base_module_t module = {
	.init = init,
	.parse_env = parse_env,
	.setup_fork = setup_fork,
	.finalize = finalize,
};

/* ---- the component -------------------------------------------------------------------- */

/*
 * Runs before the runtime opens the components that these settings are for: no
 * memory shared with the daemons, neither for key-value data nor topology,
 * since it would not exist after a restart.
 */
static int query(mca_base_module_t **out, int *priority)
{
	if (!enable || ORTE_PROC_IS_APP) {
		*out = NULL;
		return ORTE_ERROR;
	}
	setenv("PMIX_MCA_gds", "hash", 1);
	setenv("OMPI_MCA_rtc_hwloc_vmhole", "none", 1);
	*out = (mca_base_module_t *)&module;
	*priority = PRIORITY;
	return ORTE_SUCCESS;
}

extern orte_schizo_base_component_t mca_schizo_cr_component;

static void add_parameter(const char *name, const char *help, mca_base_var_type_t type, void *where)
{
	mca_base_component_var_register(&mca_schizo_cr_component.base_version, name, help, type,
					NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
					where);
}

static int register_parameters(void)
{
	add_parameter("enable", "Let the job be checkpointed with cr_checkpoint",
		      MCA_BASE_VAR_TYPE_INT, &enable);
	add_parameter("signal", "Signal to mpirun, by name or number, that saves the job (none)",
		      MCA_BASE_VAR_TYPE_STRING, &signal_name);
	add_parameter("file", "Snapshot that the signal writes (context.PID)",
		      MCA_BASE_VAR_TYPE_STRING, &file);
	add_parameter("local", "Folder on every node for the ranks' files of such a snapshot",
		      MCA_BASE_VAR_TYPE_STRING, &local);
	add_parameter("snapshot", "Let the job run on while such a snapshot is written (1)",
		      MCA_BASE_VAR_TYPE_INT, &snapshot);
	add_parameter("if_include", "Network interfaces at which mpirun listens for its daemons, "
		      "separated by commas (all)", MCA_BASE_VAR_TYPE_STRING, &interfaces);
	add_parameter("keep", "Snapshots of that name that are kept",
		      MCA_BASE_VAR_TYPE_INT, &keep);
	return ORTE_SUCCESS;
}

__attribute__((visibility("default"))) orte_schizo_base_component_t mca_schizo_cr_component = {
	.base_version = {
		MCA_SCHIZO_BASE_VERSION_1_0_0,
		.mca_component_name = "cr",
		MCA_BASE_MAKE_VERSION(component, ORTE_MAJOR_VERSION, ORTE_MINOR_VERSION,
				      ORTE_RELEASE_VERSION),
		.mca_query_component = query,
		.mca_register_component_params = register_parameters,
	},
	.base_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
};
