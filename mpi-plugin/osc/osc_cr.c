// SPDX-License-Identifier: GPL-2.0
/*
 * The component osc/cr: offers no windows, but says why there are none in shared
 * memory, and none with MPI_THREAD_MULTIPLE, which osc/pt2pt does not support.  It is
 * queried, like every component for one-sided communication, when the application
 * creates a window; only jobs that can be checkpointed select it.
 */
#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/runtime/mpiruntime.h"

#include <stdio.h>

#define PRIORITY	90	/* above osc/pt2pt, whose own message would mislead */

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

static int query(struct ompi_win_t *win, void **base, size_t size, int unit,
		 struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
	(void)win;
	(void)base;
	(void)size;
	(void)unit;
	(void)info;
	if (flavor == MPI_WIN_FLAVOR_SHARED) {
		say_why(comm, "MPI_Win_allocate_shared is not supported in a job that can "
			"be checkpointed: its ranks may restart on different nodes");
		return -1;
	}
	if (!ompi_mpi_thread_multiple)
		return -1;
	say_why(comm, "one-sided communication is not supported in a job that can be "
		"checkpointed and has asked for MPI_THREAD_MULTIPLE (mpi4py always does, "
		"unless there is MPI4PY_RC_THREADS=0 in its environment)");
	return PRIORITY;
}

static int select_none(struct ompi_win_t *win, void **base, size_t size, int unit,
		       struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor,
		       int *model)
{
	(void)win;
	(void)base;
	(void)size;
	(void)unit;
	(void)comm;
	(void)info;
	(void)flavor;
	(void)model;
	return OMPI_ERR_NOT_SUPPORTED;
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
	.osc_select = select_none,
	.osc_finalize = end,
};
