// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a peer's memory: with one system call if it is on this node and
 * may be read; else it is asked to send.  This is decided at each get:
 * a message that was announced before a checkpoint may be fetched from another
 * node after the restart.
 */
#include "btl_cr.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "btl_cr_gate.h"

/* A get under way; its address is its id. */
struct get {
	mca_btl_base_rdma_completion_fn_t done;
	void *local, *context, *data;
	mca_btl_base_registration_handle_t *handle;
};

void cr_module_get_done(cr_endpoint *ep, uint64_t id)
{
	struct get get = *(struct get *)(uintptr_t)id;

	free((void *)(uintptr_t)id);
	get.done(ep->module, ep, get.local, get.handle, get.context, get.data, OPAL_SUCCESS);
}

static int read_memory(cr_endpoint *ep, void *local, uint64_t remote, size_t size)
{
	ssize_t length;

	while (size) {
		struct iovec to = { local, size };
		struct iovec from = { (void *)(uintptr_t)remote, size };

		length = process_vm_readv(ep->address.pid, &to, 1, &from, 1, 0);
		if (length <= 0)
			return length ? -errno : -EFAULT;
		local = (char *)local + length;
		remote += length;
		size -= length;
	}
	return 0;
}

static int ask(cr_endpoint *ep, const struct get *get, uint64_t remote, size_t size)
{
	struct get *keep = malloc(sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	*keep = *get;
	if (cr_module_ask(ep, remote, get->local, size, (uintptr_t)keep)) {
		free(keep);
		return -ENOMEM;
	}
	return 0;
}

int cr_get(mca_btl_base_module_t *module, cr_endpoint *ep, void *local, uint64_t remote,
	   mca_btl_base_registration_handle_t *local_handle,
	   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
	   mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	const struct get get = { done, local, context, data, local_handle };
	bool finished = false;
	int rc = 0;

	(void)remote_handle;
	(void)flags;
	(void)order;
	cr_gate_enter();
	if (cr_endpoint_resolve(ep))
		rc = -ENOENT;
	else if (ep->cma && cr_endpoint_near(ep))
		finished = !read_memory(ep, local, remote, size);
	if (!finished && !rc) {
		ep->cma = false;
		rc = ask(ep, &get, remote, size);
	}
	cr_gate_leave();
	if (cr_gate.threaded)
		cr_later_settle();
	if (finished)
		done(module, ep, local, local_handle, context, data, OPAL_SUCCESS);
	return rc ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}
