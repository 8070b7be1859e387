// SPDX-License-Identifier: GPL-2.0
/*
 * The checkpoint thread's side of btl/cr: see btl_cr_control.h.  It works on the
 * endpoints with the gate closed and never calls up.
 */
#include "btl_cr_control.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "btl_cr.h"
#include "btl_cr_gate.h"
#include "btl_cr_tcp.h"

#define REJOIN_NS	300000000ll	/* a peer that has died meanwhile costs as much */

static int gate_close(int timeout_ms)
{
	int rc;

	if (!cr_module_ready)
		return -ESHUTDOWN;
	rc = cr_gate_close(timeout_ms);
	if (rc && cr_gate.threaded && cr_gate_grab()) {	/* what was begun meanwhile */
		cr_later_take_ready();
		cr_gate_leave();
	}
	if (!rc && !cr_module_ready) {	/* MPI_Finalize came first */
		cr_gate_open();
		return -ESHUTDOWN;
	}
	return rc;
}

static int gate_open(void)
{
	if (cr_gate_mine() && cr_module_ready)
		cr_later_take_ready();
	return cr_gate_open();
}

static int bookmarks(struct mca_btl_cr_bookmark *entries, int max)
{
	int count = 0, rc;

	if (!cr_gate_mine())
		return -EPERM;
	rc = cr_ring_accept();
	if (rc < 0)
		return rc;
	for (unsigned int i = 0; i < cr_endpoints_count; i++) {
		const cr_endpoint *ep = cr_endpoints[i];

		if (!ep->sent && !ep->received)
			continue;
		if (count < max)
			entries[count] = (struct mca_btl_cr_bookmark){
				.rank = ep->rank, .sent = ep->sent, .received = ep->received,
			};
		count++;
	}
	return count;
}

/* One step: receives what is available, or waits for it until `until` (ns). */
static int pull(cr_endpoint *ep, int64_t until)
{
	uint64_t before = ep->received;
	struct pollfd socket = { .fd = ep->fd, .events = POLLIN };
	const struct timespec nap = { 0, 50000 };
	int64_t left;
	ssize_t length;
	int rc;

	rc = cr_ring_accept();
	if (rc >= 0 && ep->in.data)
		rc = cr_ring_pull(ep);
	if (rc < 0)
		return rc;
	length = cr_tcp_pull(ep);
	if (length < 0)
		return length;
	if (ep->received != before)
		return 0;
	left = until - cr_now();
	if (left <= 0)
		return -ETIMEDOUT;
	if (ep->fd >= 0)
		poll(&socket, 1, left / 1000000 + 1);
	else
		nanosleep(&nap, NULL);
	return 0;
}

static int drain(uint32_t peer, uint64_t sent, int timeout_ms)
{
	int64_t until = cr_now() + timeout_ms * 1000000LL;
	cr_endpoint *ep;
	int rc = 0;

	if (!cr_gate_mine())
		return -EPERM;
	ep = cr_endpoint_get(peer);
	if (!ep)
		return -ENOMEM;
	if (ep->seals.broken)
		rc = -EBADMSG;
	while (!rc && ep->received < sent)
		rc = pull(ep, until);
	cr_module_drained = true;
	if (rc)
		return rc;
	if (ep->received != sent)
		return -EPROTO;
	cr_tcp_lost_nothing(ep);
	return 0;
}

/*
 * A restart makes connections anew that nobody had accepted, which it cannot do on a node without
 * the address of their port.
 */
static int suspend(void)
{
	if (!cr_gate_mine())
		return -EPERM;
	cr_guest_take_all();
	return cr_ring_suspend();
}

/*
 * A message that is begun right after this is to reach its receiver, and not to wait for the sender's
 * next call of MPI: the peers of this node, which resume at the same time, are waited for a little.
 */
static int resume(void)
{
	const struct timespec nap = { 0, 100000 };
	int64_t until;
	bool missing;
	int rc = cr_gate_mine() ? cr_ring_resume() : -EPERM;

	if (rc)
		return rc;
	until = cr_now() + REJOIN_NS;
	do {
		missing = false;
		for (unsigned int i = 0; i < cr_endpoints_count; i++)
			missing |= cr_endpoint_rejoin(cr_endpoints[i]);
		if (missing)
			nanosleep(&nap, NULL);
	} while (missing && cr_now() < until);
	return 0;
}

static int restart(void)
{
	int rc;

	if (!cr_gate_mine())
		return -EPERM;
	cr_ring_close();
	cr_tcp_close();
	cr_address_forget(true);
	for (unsigned int i = 0; i < cr_endpoints_count; i++)
		cr_endpoint_forget(cr_endpoints[i]);
	rc = cr_gate_register();
	return rc && !cr_gate.threaded ? rc : cr_module_ends();
}

static int address_get(void *address, size_t max)
{
	if (!cr_module_ready)
		return -ESHUTDOWN;
	if (max < sizeof(cr_address_own))
		return -ENOSPC;
	memcpy(address, &cr_address_own, sizeof(cr_address_own));
	return sizeof(cr_address_own);
}

static int address_set(uint32_t rank, const void *address, size_t length)
{
	struct cr_address copy;
	cr_endpoint *ep;

	if (length != sizeof(copy))
		return -EINVAL;
	memcpy(&copy, address, sizeof(copy));
	if (cr_address_check(&copy, length))
		return -EINVAL;
	ep = cr_gate_mine() ? cr_endpoint_find(rank) : NULL;
	if (ep)
		memset(&ep->address, 0, sizeof(ep->address));
	return cr_address_enter(rank, &copy);
}

static int address_source(int (*ask)(uint32_t rank))
{
	cr_address_source(ask);
	return 0;
}

/*
 * One step towards a connection.  Of two ranks the lower one connects: both at
 * once would have to agree first.  Returns whether it is still missing.
 */
static bool approach(cr_endpoint *ep, uint32_t own)
{
	int rc;

	if ((!ep->sent && !ep->received) || ep->tcp_state == CR_TCP_UP ||
	    cr_endpoint_resolve(ep) || cr_endpoint_near(ep))
		return false;
	if (ep->tcp_state != CR_TCP_DOWN || own > ep->rank ||
	    (ep->retry_at && cr_now() < ep->retry_at))
		return true;
	rc = cr_tcp_connect(ep);
	if (rc)
		cr_endpoint_retry(ep, rc);
	return true;
}

static int reconnect(int timeout_ms)
{
	uint32_t own = opal_proc_local_get()->proc_name.vpid;
	int64_t until = cr_now() + timeout_ms * 1000000LL;
	const struct timespec nap = { 0, 50000 };
	bool missing;

	if (!cr_gate_mine())
		return -EPERM;
	do {
		missing = false;
		for (unsigned int i = 0; i < cr_endpoints_count; i++)
			missing |= approach(cr_endpoints[i], own);
		if (missing && !cr_tcp_handshakes())
			nanosleep(&nap, NULL);
	} while (missing && cr_now() < until);
	/* Failures so far do not count for a sender's connect time-out. */
	for (unsigned int i = 0; i < cr_endpoints_count; i++)
		cr_endpoints[i]->failing_since = 0;
	return 0;
}

extern const struct mca_btl_cr_control mca_btl_cr_control;

__attribute__((visibility("default")))
const struct mca_btl_cr_control mca_btl_cr_control = {
	.version = MCA_BTL_CR_CONTROL_VERSION,
	.size = sizeof(struct mca_btl_cr_control),
	.gate_close = gate_close,
	.gate_open = gate_open,
	.bookmarks = bookmarks,
	.drain = drain,
	.suspend = suspend,
	.resume = resume,
	.restart = restart,
	.address_get = address_get,
	.address_set = address_set,
	.reconnect = reconnect,
	.address_source = address_source,
	.tracer = cr_module_tracer,
};
