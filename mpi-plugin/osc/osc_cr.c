// SPDX-License-Identifier: GPL-2.0
/*
 * The component osc/cr: no memory that ranks of a node share.  It says why there are no
 * windows in shared memory; others are left to osc/pt2pt (4.1), which does not support
 * MPI_THREAD_MULTIPLE, or osc/rdma (5.0), which is made to share nothing.  It is queried,
 * like every component for one-sided communication, when the application creates a window;
 * only jobs that can be checkpointed select it.
 */
#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITY	90	/* above the others: osc/pt2pt's own message would mislead */

static int begin(bool progress_threads, bool threads)
{
	(void)progress_threads;
	(void)threads;
	return OMPI_SUCCESS;
}

static int end(void)
{
	return OMPI_SUCCESS;
}

/* Windows are created collectively: no rank fails, and ends the job, before it is printed. */
static void say_why(struct ompi_communicator_t *comm, const char *why)
{
	if (ompi_comm_rank(comm) == 0)
		fprintf(stderr, "KCR: %s\n", why);
	comm->c_coll->coll_barrier(comm, comm->c_coll->coll_barrier_module);
}

/* One of those that the job may use, or NULL. */
static const ompi_osc_base_component_t *component(const char *name)
{
	opal_list_t *all = &ompi_osc_base_framework.framework_components;

	for (opal_list_item_t *each = opal_list_get_first(all); each != opal_list_get_end(all);
	     each = opal_list_get_next(each)) {
		const mca_base_component_t *c = ((mca_base_component_list_item_t *)each)->cli_component;

		if (!strcmp(c->mca_component_name, name))
			return (const ompi_osc_base_component_t *)c;
	}
	return NULL;
}

static int query(struct ompi_win_t *win, void **base, size_t size, int unit,
		 struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
	const ompi_osc_base_component_t *rdma = component("rdma");

	if (flavor == MPI_WIN_FLAVOR_SHARED) {
		say_why(comm, "MPI_Win_allocate_shared is not supported in a job that can "
			"be checkpointed: its ranks may restart on different nodes");
		return -1;
	}
	if (rdma)
		return rdma->osc_query(win, base, size, unit, comm, info, flavor) < 0 ? -1 : PRIORITY;
	if (!ompi_mpi_thread_multiple)
		return -1;
	say_why(comm, "one-sided communication is not supported in a job that can be "
		"checkpointed and has asked for MPI_THREAD_MULTIPLE (mpi4py always does, "
		"unless there is MPI4PY_RC_THREADS=0 in its environment)");
	return PRIORITY;
}

/*
 * osc/rdma puts its state, and windows that it allocates, into a file that all ranks of
 * the node map, unless it believes itself to be the only one there.
 */
static int select_apart(struct ompi_win_t *win, void **base, size_t size, int unit,
			struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor,
			int *model)
{
	const ompi_osc_base_component_t *rdma = component("rdma");
	opal_hwloc_locality_t *near;
	int ret, ranks = ompi_comm_size(comm);

	near = rdma ? calloc(ranks, sizeof(*near)) : NULL;
	if (!near)
		return rdma ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERR_NOT_SUPPORTED;
	for (int i = 0; i < ranks; i++) {
		ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);

		near[i] = proc->super.proc_flags;
		if (proc != ompi_proc_local())
			proc->super.proc_flags = OPAL_PROC_NON_LOCAL;
	}
	ret = rdma->osc_select(win, base, size, unit, comm, info, flavor, model);
	for (int i = 0; i < ranks; i++)
		ompi_comm_peer_lookup(comm, i)->super.proc_flags = near[i];
	free(near);
	return ret;
}

extern ompi_osc_base_component_t mca_osc_cr_component;

__attribute__((visibility("default"))) ompi_osc_base_component_t mca_osc_cr_component = {
	.osc_version = {
		OMPI_OSC_BASE_VERSION_3_0_0,
		.mca_component_name = "cr",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
				      OMPI_RELEASE_VERSION),
	},
	.osc_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
	.osc_init = begin,
	.osc_query = query,
	.osc_select = select_apart,
	.osc_finalize = end,
};
