// SPDX-License-Identifier: GPL-2.0
/*
 * The component schizo/cr: brings the coordinator into mpirun and the daemon's
 * part into mpirun and every orted, and tells the ranks where they are.  It does
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

#include "mpi-plugin/coordinator/node.h"
#include "mpi-plugin/coordinator/root.h"
#include "mpi-plugin/coordinator/wire.h"
#include "mpi-plugin/job/relaunch.h"
#include "mpi-plugin/job/snapshot.h"
#include "report/report.h"

#define PRIORITY	90
#define ROOT_ROOM	1024		/* of all addresses of mpirun's machine */

static int enable;
static char root_address[ROOT_ROOM], secret[WIRE_SECRET + 1];
static char node_name[NODE_NAME_MAX];

/* What makes the ranks fit to be saved, beside btl/cr itself. */
static const char *const rank_settings[][2] = {
	{ "OMPI_MCA_pml", "ob1" },
	{ "OMPI_MCA_btl", "cr,self" },
	{ "OMPI_MCA_mpi_add_procs_cutoff", "1000000" },	/* none is looked up after a restart */
	{ "OMPI_MCA_coll", "^sm,han,adapt,monitoring" },
	{ "OMPI_MCA_osc", "pt2pt,cr" },	/* cr only says what is missing */
	{ "OMPI_MCA_sharedfp", "^sm" },
};

/* ---- what a snapshot says of the job ----------------------------------------------------- */

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

/* A restarted job's program and count of snapshots are those of its first life. */
static int describe_restart(struct snapshot *job, const char *dir)
{
	struct snapshot *old;
	int err = snapshot_load(dir, &old, NULL);

	if (err)
		return err;
	strings_free(job->program);
	job->program = NULL;
	job->interval = old->interval;
	for (char **each = old->program; each && *each && !err; each++)
		err = strings_add(&job->program, *each);
	snapshot_free(old);
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
	for (char **each = environ; *each && !err; each++)
		if (worth_keeping(*each))
			err = strings_add(&job->environment, *each);
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

/* ---- in mpirun ------------------------------------------------------------------------------ */

static int begin_root(opal_cmd_line_t *line)
{
	struct snapshot *job = describe_job(line);
	int err = job ? root_start(job, root_address, sizeof(root_address), secret) : -ENOMEM;

	if (err) {
		fprintf(stderr, "KCR: this job cannot be checkpointed: %s\n",
			report_message() ? report_message() : strerror(-err));
		*root_address = '\0';
	}
	return err;
}

/* The environment that all ranks get; once per program of the command line. */
static int parse_env(char *path, opal_cmd_line_t *line, char **source, char ***out)
{
	const char *restarted = getenv(RELAUNCH_VARIABLE);

	(void)path;
	(void)source;
	if (!*root_address && begin_root(line))
		return ORTE_SUCCESS;
	for (size_t i = 0; i < sizeof(rank_settings) / sizeof(*rank_settings); i++)
		opal_setenv(rank_settings[i][0], rank_settings[i][1], true, out);
	opal_setenv(WIRE_ROOT_VARIABLE, root_address, true, out);
	opal_setenv(WIRE_SECRET_VARIABLE, secret, true, out);
	if (restarted)
		opal_setenv(RELAUNCH_VARIABLE, restarted, true, out);
	return ORTE_SUCCESS;
}

/* ---- in mpirun and the orteds ------------------------------------------------------------------ */

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
	/* mpirun's own, the last, is the loopback address. */
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
			orte_process_info.nodename, strerror(-err));
		*node_name = '\0';
	} else {
		opal_setenv(WIRE_DAEMON_VARIABLE, node_name, true, &app->env);
	}
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

/* ---- the component --------------------------------------------------------------------------------- */

/*
 * Runs before the runtime opens the parts that these settings are for: no
 * memory shared with the daemons, neither for key-value data nor topology,
 * since it would be gone at a restart.
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

static int register_parameters(void)
{
	mca_base_component_var_register(&mca_schizo_cr_component.base_version, "enable",
					"Let the job be checkpointed with cr_checkpoint",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &enable);
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
