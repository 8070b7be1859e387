// SPDX-License-Identifier: GPL-2.0
/*
 * What a job that can be checkpointed may not do, refused when it is attempted:
 * anything that makes processes of two jobs communicate goes through one of
 * the runtime's functions replaced here.  (Windows of shared memory: osc/cr.)
 */
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/pmix/pmix.h"

#include <stdio.h>

#include "mpi-plugin/hook/rank.h"

static int refuse(const char *what)
{
	fprintf(stderr, "KCR: %s not supported in a job that can be checkpointed: start it with "
		"mpirun instead of cr_mpirun\n", what);
	return OPAL_ERR_NOT_SUPPORTED;
}

static int refuse_spawn(opal_list_t *info, opal_list_t *apps, opal_jobid_t *job)
{
	(void)info;
	(void)apps;
	(void)job;
	return refuse("MPI_Comm_spawn is");
}

static int refuse_publish(opal_list_t *info)
{
	(void)info;
	return refuse("MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_join and MPI_Publish_name are");
}

static int refuse_lookup(opal_list_t *data, opal_list_t *info)
{
	(void)data;
	return refuse_publish(info);
}

void refuse_begin(void)
{
	opal_pmix.spawn = refuse_spawn;
	opal_pmix.publish = refuse_publish;
	opal_pmix.lookup = refuse_lookup;
}
