/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between Open MPI series: headers, the form of the receive
 * callback, names of the modex.  Nothing else in btl/cr tests versions.
 */
#ifndef MCA_BTL_CR_COMPAT_H
#define MCA_BTL_CR_COMPAT_H

#include "opal_config.h"

#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#if BTL_VERSION >= 330		/* 5.0 */
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/thread_usage.h"
#define CR_MODEX_GLOBAL PMIX_GLOBAL
#else
#include "opal/mca/pmix/pmix.h"
#define CR_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#endif

/*
 * May the program call MPI from several threads, even if Open MPI does not say so?  What begins for a
 * session may be used by others later, of which each has a level of its own.
 */
static inline bool cr_compat_threads(void)
{
#if BTL_VERSION >= 330
	return ompi_mpi_state != OMPI_MPI_STATE_INIT_STARTED || opal_using_threads();
#else
	return false;
#endif
}

/* Passes one message to the callback registered for tag. */
static inline void cr_compat_receive(mca_btl_base_module_t *module,
				     struct mca_btl_base_endpoint_t *endpoint,
				     mca_btl_base_tag_t tag, void *payload, size_t length)
{
	mca_btl_active_message_callback_t *reg = &mca_btl_base_active_message_trigger[tag];
	mca_btl_base_segment_t segment = {
		.seg_addr.pval = payload, .seg_len = length,
	};
#if BTL_VERSION >= 330
	const mca_btl_base_receive_descriptor_t message = {
		.endpoint = endpoint, .des_segments = &segment, .des_segment_count = 1,
		.tag = tag, .cbdata = reg->cbdata,
	};

	reg->cbfunc(module, &message);
#else
	mca_btl_base_descriptor_t message;

	(void)endpoint;
	message.des_segments = &segment;
	message.des_segment_count = 1;
	message.des_flags = 0;
	message.des_cbfunc = NULL;
	reg->cbfunc(module, tag, &message, reg->cbdata);
#endif
}

#endif
