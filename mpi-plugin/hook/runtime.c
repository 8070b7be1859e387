// SPDX-License-Identifier: GPL-2.0
/*
 * The connection to the runtime's PMIx server.  A restored rank finds it hung
 * up; PMIx would make Open MPI end the process, so a handler that runs first
 * prevents that while a restart may be the reason.  PMIx is called
 * directly: Open MPI's own wrapper would give the process a new name.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOSS_PATIENCE_MS	5000

static atomic_bool loss_expected;
static atomic_bool lost;
static bool reattached;		/* Open MPI's own handlers are lost: ours ends the process */

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
	atomic_store(&lost, true);
	if (!atomic_load(&loss_expected) && reattached)
		_exit(1);
	if (done)
		done(atomic_load(&loss_expected) ? PMIX_EVENT_ACTION_COMPLETE :
		     PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, data);
}

int runtime_watch(void)
{
	pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
	pmix_info_t first;
	bool yes = true;
	int rc;

	PMIX_INFO_LOAD(&first, PMIX_EVENT_HDLR_FIRST_IN_CATEGORY, &yes, PMIX_BOOL);
	rc = PMIx_Register_event_handler(&code, 1, &first, 1, server_lost, NULL, NULL);
	PMIX_INFO_DESTRUCT(&first);
	/* Without a callback the result is the handler's index. */
	return rc < 0 ? -EIO : 0;
}

void runtime_expect_loss(bool expect)
{
	atomic_store(&loss_expected, expect);
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

int runtime_reattach(const struct launcher *l)
{
	pmix_proc_t self;
	int err;

	for (int waited = 0; !atomic_load(&lost) && waited < LOSS_PATIENCE_MS; waited++)
		usleep(1000);
	PMIx_Finalize(NULL, 0);		/* fails, as its server is lost */
	err = take_environment(l->environment);
	if (err)
		return err;
	if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
		return -ECONNREFUSED;
	reattached = true;
	atomic_store(&lost, false);
	return runtime_watch();
}
