// SPDX-License-Identifier: GPL-2.0
/*
 * The connection to the runtime's PMIx server.  It is lost when the launcher dies, and in
 * every restored rank; PMIx would make Open MPI end the process, so a handler that runs
 * first says that all is done.  Open MPI works without a server, but not after PMIx_Finalize
 * (in MPI_Finalize 4.1.4 and 5.0.7 then wait for the fence forever), which is called only
 * to join another one.  PMIx is called directly: Open MPI's own wrapper would give the
 * process a new name.
 */
#include "ompi_config.h"

#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/params.h"

#include "mpi-plugin/hook/hook_cr_compat.h"
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOSS_PATIENCE_MS	5000
#define MOST_INITS		8	/* PMIx_Init counts */

static atomic_bool lost;
static pmix_proc_t first_name;	/* of this process: Open MPI's for ever */
static bool without_fence;	/* what the user wants in MPI_Finalize */

/* The fence of MPI_Finalize would fail, and be reported; hook_cr.c has a barrier there. */
static void go_without(void)
{
	if (atomic_exchange(&lost, true))
		return;
	without_fence = ompi_async_mpi_finalize;
	ompi_async_mpi_finalize = true;
}

static void server_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
			pmix_info_t *info, size_t nr_info, pmix_info_t *results, size_t nr_results,
			pmix_event_notification_cbfunc_fn_t done, void *data)
{
	(void)id;
	(void)status;
	(void)source;
	(void)info;
	(void)nr_info;
	(void)results;
	(void)nr_results;
	go_without();
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static int take_name(void)
{
	if (PMIx_Init(&first_name, NULL, 0) != PMIX_SUCCESS)
		return -EIO;
	PMIx_Finalize(NULL, 0);		/* it was counted */
	return 0;
}

int runtime_watch(void)
{
	pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
	pmix_info_t first;
	bool yes = true;
	int rc = first_name.nspace[0] ? 0 : take_name();

	if (rc)
		return rc;
	PMIX_INFO_LOAD(&first, PMIX_EVENT_HDLR_FIRST_IN_CATEGORY, &yes, PMIX_BOOL);
	rc = PMIx_Register_event_handler(&code, 1, &first, 1, server_lost, NULL, NULL);
	PMIX_INFO_DESTRUCT(&first);
	/* Without a callback the result is the handler's index. */
	return rc < 0 ? -EIO : 0;
}

static bool is_runtime_variable(const char *assignment)
{
	return !strncmp(assignment, "PMIX_", 5) || !strncmp(assignment, "OMPI_", 5);
}

static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(a, "=");

	return !strncmp(a, b, length) && b[length] == '=';
}

static size_t count(char **environment)
{
	size_t n = 0;

	while (environment && environment[n])
		n++;
	return n;
}

/* Replaces the variable in the first *n of `environment`, or appends it. */
static void put(char **environment, size_t *n, char *assignment)
{
	for (size_t i = 0; i < *n; i++)
		if (same_name(assignment, environment[i])) {
			environment[i] = assignment;
			return;
		}
	environment[(*n)++] = assignment;
}

/*
 * The application's threads may be in getenv(), which walks the array and the
 * strings without a lock.  Both stay as they are: a new array is built, with the
 * unchanged strings, and replaces the old one at once.
 */
static int take_environment(char **fresh)
{
	char **merged = calloc(count(environ) + count(fresh) + 1, sizeof(*merged)), *copy;
	size_t n = count(environ);

	if (!merged)
		return -ENOMEM;
	memcpy(merged, environ, n * sizeof(*merged));
	for (; fresh && *fresh; fresh++) {
		if (!strchr(*fresh, '=') || !is_runtime_variable(*fresh))
			continue;
		copy = strdup(*fresh);
		if (!copy) {
			free(merged);	/* a few strings leak: the rank ends */
			return -ENOMEM;
		}
		put(merged, &n, copy);
	}
	__atomic_store_n(&environ, merged, __ATOMIC_RELEASE);
	return 0;
}

/*
 * When processes meet in a new way (MPI_Intercomm_create), Open MPI compares its PML with that of rank 0
 * (of all of them, without a full exchange of data).  It looks it up by the job's first name, which
 * the server that was joined does not know: it would wait.
 */
static int keep_pml(void)
{
	const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	pmix_proc_t root = first_name;

	root.rank = 0;
	value.data.bo.bytes = (char *)pml;
	value.data.bo.size = strlen(pml) + 1;
	opal_pmix_collect_all_data = true;
	return PMIx_Store_internal(&root, "pml.base.2.0", &value) == PMIX_SUCCESS ? 0 : -ENOMEM;
}

/* Leaves the lost server, and joins the one of the environment as often as this one. */
static int change_server(void)
{
	pmix_proc_t self;
	int inits = 0;

	for (; PMIx_Initialized() && inits < MOST_INITS; inits++)
		PMIx_Finalize(NULL, 0);		/* fails, as its server is lost */
	while (inits--)
		if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
			return -ECONNREFUSED;
	ompi_async_mpi_finalize = without_fence;
	atomic_store(&lost, false);
	return keep_pml() ?: runtime_watch();
}

int runtime_reattach(const struct launcher *l)
{
	int err;

	/* PMIx hears of the loss at once; PMIX_MCA_pmix_event_caching_window says when it tells. */
	for (int waited = 0; !atomic_load(&lost) && waited < LOSS_PATIENCE_MS; waited++)
		usleep(1000);
	go_without();
	if (!launcher_get(l, "PMIX_NAMESPACE"))
		return 0;
	err = take_environment(l->environment);
	return err ? err : change_server();
}
