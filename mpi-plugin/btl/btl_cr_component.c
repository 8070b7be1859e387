// SPDX-License-Identifier: GPL-2.0
/*
 * The component: parameters, whether it is to be used, its start.
 * Without `btl_cr_enable` or its name in the list of BTLs
 * it does nothing and costs nothing.
 */
#include "btl_cr.h"

#include <stdlib.h>
#include <string.h>

struct cr_param cr_param = {
	.shm = true,
	.cma = true,
	.ring_size = 64 * 1024,
	.connect_timeout = 30,
	.lost_timeout = 300,
};

static int add_param(const char *name, const char *help, mca_base_var_type_t type,
		     mca_base_var_scope_t scope, void *where)
{
	return mca_base_component_var_register(&mca_btl_cr_component.btl_version, name, help,
					       type, NULL, 0,
					       scope == MCA_BASE_VAR_SCOPE_LOCAL ?
					       MCA_BASE_VAR_FLAG_SETTABLE : 0,
					       OPAL_INFO_LVL_5, scope, where);
}

static int register_params(void)
{
	const mca_base_var_scope_t fixed = MCA_BASE_VAR_SCOPE_READONLY;

	add_param("enable", "Use this transport, which checkpoints need",
		  MCA_BASE_VAR_TYPE_BOOL, fixed, &cr_param.enable);
	add_param("shm", "Use shared memory between ranks on one node",
		  MCA_BASE_VAR_TYPE_BOOL, fixed, &cr_param.shm);
	add_param("cma", "Read large messages from the memory of ranks on the same node",
		  MCA_BASE_VAR_TYPE_BOOL, fixed, &cr_param.cma);
	add_param("node", "Ranks with different values use no shared memory; read "
		  "when a rank starts and when it restarts",
		  MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_SCOPE_LOCAL, &cr_param.node);
	add_param("ring_size", "Bytes of the ring from one rank to another on its node, "
		  "a power of two from 65536 on; the same in all ranks",
		  MCA_BASE_VAR_TYPE_UNSIGNED_INT, fixed, &cr_param.ring_size);
	add_param("if_include", "Network interfaces for TCP, separated by commas (all; "
		  "loopback only if all ranks are on one node)",
		  MCA_BASE_VAR_TYPE_STRING, fixed, &cr_param.if_include);
	add_param("seal", "Authenticate every frame sent by TCP; the same in all ranks",
		  MCA_BASE_VAR_TYPE_BOOL, fixed, &cr_param.seal);
	add_param("connect_timeout", "Seconds until a peer that cannot be reached, by ten attempts or more, ends the job",
		  MCA_BASE_VAR_TYPE_INT, fixed, &cr_param.connect_timeout);
	add_param("lost_timeout", "Seconds in MPI until a connection that has failed ends the job, "
		  "if nothing else does", MCA_BASE_VAR_TYPE_INT, fixed, &cr_param.lost_timeout);
	return OPAL_SUCCESS;
}

/* Is cr in the list of BTLs that the user gave? */
static bool is_listed(void)
{
	const char *list, *at;
	char **value = NULL;
	int index;

	if (mca_base_var_find_by_name("btl", &index) < 0 ||
	    mca_base_var_get_value(index, &value, NULL, NULL) != OPAL_SUCCESS || !value)
		return false;
	list = *value;
	if (!list || *list == '^')
		return false;
	for (at = strstr(list, "cr"); at; at = strstr(at + 1, "cr"))
		if ((at == list || at[-1] == ',') && (!at[2] || at[2] == ','))
			return true;
	return false;
}

static bool is_wanted(void)
{
	return cr_param.enable || is_listed();
}

void cr_fatal(cr_endpoint *ep, const char *what, int error)
{
	static bool told;

	if (told)
		return;
	told = true;
	if (ep)
		opal_output(0, "btl/cr: rank %u, peer %u: %s: %s",
			    (unsigned int)opal_proc_local_get()->proc_name.vpid, ep->rank,
			    what, strerror(-error));
	else
		opal_output(0, "btl/cr: rank %u: %s: %s",
			    (unsigned int)opal_proc_local_get()->proc_name.vpid,
			    what, strerror(-error));
	if (!cr_module_error)
		abort();
	cr_module_error(ep && ep->module ? ep->module : &cr_module_far,
			MCA_BTL_ERROR_FLAGS_FATAL, NULL, (char *)what);
}

static int publish_address(void)
{
	int rc;

	OPAL_MODEX_SEND(rc, CR_MODEX_GLOBAL, &mca_btl_cr_component.btl_version,
			&cr_address_own, sizeof(cr_address_own));
	return rc;
}

static mca_btl_base_module_t **init(int *count, bool progress_threads, bool threads)
{
	mca_btl_base_module_t **modules;
	int rc;

	(void)progress_threads;
	*count = 0;
	if (!is_wanted())
		return NULL;
	if (cr_param.ring_size < 65536 || cr_param.ring_size & (cr_param.ring_size - 1)) {
		opal_output(0, "btl/cr: btl_cr_ring_size must be a power of two from 65536 on");
		return NULL;
	}
	mca_btl_base_param_verify(&cr_module_near);
	mca_btl_base_param_verify(&cr_module_far);
	rc = cr_module_open(threads);
	if (rc) {
		opal_output(0, "btl/cr: cannot start: %s", strerror(-rc));
		return NULL;
	}
	modules = calloc(2, sizeof(*modules));
	if (!modules || publish_address() != OPAL_SUCCESS) {
		free(modules);
		return NULL;
	}
	modules[(*count)++] = &cr_module_near;
	modules[(*count)++] = &cr_module_far;
	return modules;
}

static int nothing(void)
{
	return OPAL_SUCCESS;
}

__attribute__((visibility("default")))
mca_btl_base_component_3_0_0_t mca_btl_cr_component = {
	.btl_version = {
		MCA_BTL_DEFAULT_VERSION("cr"),
		.mca_open_component = nothing,
		.mca_close_component = nothing,
		.mca_register_component_params = register_params,
	},
	.btl_data = { .param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT },
	.btl_init = init,
	.btl_progress = cr_module_progress,
};
