/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between Open MPI series: where MPI_Publish_name goes, sessions, and where
 * opal_pmix_collect_all_data is declared.
 * Nothing else in hook/cr tests versions.
 */
#ifndef MCA_HOOK_CR_COMPAT_H
#define MCA_HOOK_CR_COMPAT_H

#include "opal_config.h"

#include "opal/class/opal_list.h"

#if OPAL_MAJOR_VERSION < 5
#include "opal/mca/pmix/pmix.h"
#else
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/util/proc.h"

#include <pmix.h>
#endif

#include <stdbool.h>
#include <stdint.h>

/*
 * Takes the place of publishing and looking up.  5.0 calls PMIx itself, without a table:
 * there, names can be published, but nobody can connect to what they name.
 */
static inline void cr_compat_publish(int (*publish)(opal_list_t *info),
				     int (*lookup)(opal_list_t *data, opal_list_t *info))
{
#if OPAL_MAJOR_VERSION < 5
	opal_pmix.publish = publish;
	opal_pmix.lookup = lookup;
#else
	(void)publish;
	(void)lookup;
#endif
}

/*
 * When the component is opened: is this for a session, before MPI_Init?  Then *rank and
 * *size are those that MPI_COMM_WORLD would have.  Programs like ompi_info, which open
 * components as well, have no PMIx.
 */
static inline bool cr_compat_session(uint32_t *rank, uint32_t *size)
{
#if OPAL_MAJOR_VERSION < 5
	(void)rank;
	(void)size;
	return false;
#else
	*rank = opal_process_info.my_name.vpid;
	*size = opal_process_info.num_procs;
	return PMIx_Initialized() && ompi_mpi_state < OMPI_MPI_STATE_INIT_STARTED;
#endif
}

#endif /* MCA_HOOK_CR_COMPAT_H */
