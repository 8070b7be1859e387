// SPDX-License-Identifier: GPL-2.0
/*
 * The component hook/cr: lets checkpoints of this rank begin at the end of
 * MPI_Init and end at the beginning of MPI_Finalize.  In jobs that were started
 * without cr_mpirun it does nothing.
 */
#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "opal/util/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/wire.h"
#include "mpi-plugin/hook/hook_cr_compat.h"
#include "mpi-plugin/hook/rank.h"

static bool active, session_first;

/*
 * All take part or none does: those that do wait for all others in MPI_Finalize
 * and in collective requests.  Reported by the lowest rank that cannot, which knows why.
 */
static bool all_have_begun(int err)
{
	ompi_communicator_t *world = MPI_COMM_WORLD;
	int rank = ompi_comm_rank(world), size = ompi_comm_size(world);
	int missing = err ? rank : size;

	if (world->c_coll->coll_allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MIN, world,
					  world->c_coll->coll_allreduce_module))
		return false;
	if (missing == rank && !session_first)
		fprintf(stderr, "KCR: this job cannot be checkpointed: rank %d on %s: %s\n", rank,
			opal_process_info.nodename, err == -ENOENT ?
			"the daemon of this node does not take part" : strerror(-err));
	return missing == size;
}

/*
 * A session has no MPI_Init, at whose end ranks begin together, and its groups are made by
 * the runtime's server, which a restored rank may not have: such a job is not saved.
 */
static int open_component(void)
{
	uint32_t rank, size;

	if (session_first || !getenv(WIRE_ROOT_VARIABLE) || !cr_compat_session(&rank, &size))
		return OMPI_SUCCESS;
	session_first = true;		/* also if it ends before MPI_Init, where this is called again */
	fprintf(stderr, "KCR: this job cannot be checkpointed: rank %u has called MPI_Session_init "
		"before MPI_Init\n", rank);
	if (!rank_begin(rank, size))
		rank_give_up(false);
	return OMPI_SUCCESS;
}

static void init_bottom(int argc, char **argv, int requested, int *provided)
{
	int err;

	(void)argc;
	(void)argv;
	(void)requested;
	(void)provided;
	if (!getenv(WIRE_ROOT_VARIABLE))
		return;			/* a job without checkpoints, the same in all ranks */
	err = session_first ? -ENOTSUP : rank_begin(ompi_comm_rank(MPI_COMM_WORLD),
						    ompi_comm_size(MPI_COMM_WORLD));
	active = all_have_begun(err);
	if (active)
		refuse_begin();
	else
		rank_give_up(true);
}

/*
 * Ranks that arrive early wait here, where a checkpoint is still possible, and
 * leave when all have arrived.
 */
static void finalize_top(void)
{
	ompi_communicator_t *world = MPI_COMM_WORLD;

	if (!active)
		return;
	world->c_coll->coll_barrier(world, world->c_coll->coll_barrier_module);
	rank_leave();
}

__attribute__((visibility("default"))) ompi_hook_base_component_t mca_hook_cr_component = {
	.hookm_version = {
		OMPI_HOOK_BASE_VERSION_1_0_0,
		.mca_component_name = "cr",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
				      OMPI_RELEASE_VERSION),
		.mca_open_component = open_component,
	},
	.hookm_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
	.hookm_mpi_init_bottom = init_bottom,
	.hookm_mpi_finalize_top = finalize_top,
};
