// SPDX-License-Identifier: GPL-2.0
/*
 * The component hook/cr: lets checkpoints of this rank begin at the end of
 * MPI_Init and end at the beginning of MPI_Finalize.  In jobs that were started
 * without `--mca schizo_cr_enable 1` it does nothing.
 */
#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mpi-plugin/hook/rank.h"

static bool active;

static void init_bottom(int argc, char **argv, int requested, int *provided)
{
	int err = rank_begin(ompi_comm_rank(MPI_COMM_WORLD), ompi_comm_size(MPI_COMM_WORLD));

	(void)argc;
	(void)argv;
	(void)requested;
	(void)provided;
	active = !err;
	if (active)
		refuse_begin();
	if (err && err != -ENOENT)
		fprintf(stderr, "KCR: rank %d cannot be checkpointed: %s\n",
			ompi_comm_rank(MPI_COMM_WORLD), strerror(-err));
}

/*
 * Ranks that come early wait here, where a checkpoint is still possible, and
 * say goodbye when all have come.
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
	},
	.hookm_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
	.hookm_mpi_init_bottom = init_bottom,
	.hookm_mpi_finalize_top = finalize_top,
};
