// SPDX-License-Identifier: GPL-2.0
/*
 * Peers of btl/cr.  An endpoint outlives its channels: its queue, its counters
 * and the bytes it has received carry over to the next channel, of any kind.  The
 * kind follows from the peer's address alone, at the first write.
 */
#include "btl_cr_gate.h"
#include "btl_cr_tcp.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RETRY_NS 500000
#define TRIES 10	/* that fail in a row: a rank that calls MPI rarely makes few in any time */

cr_endpoint **cr_endpoints;
unsigned int cr_endpoints_count;
static unsigned int endpoints_room;

static cr_endpoint **by_rank;
static uint32_t by_rank_room;

static cr_endpoint *waiting;	/* have a queue */
bool cr_endpoints_failing;

int64_t cr_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

cr_endpoint *cr_endpoint_find(uint32_t rank)
{
	return rank < by_rank_room ? by_rank[rank] : NULL;
}

static int make_tables(uint32_t rank)
{
	void *grown;

	if (rank >= by_rank_room) {
		uint32_t room = rank + 64;

		grown = realloc(by_rank, room * sizeof(*by_rank));
		if (!grown)
			return -ENOMEM;
		by_rank = grown;
		memset(by_rank + by_rank_room, 0, (room - by_rank_room) * sizeof(*by_rank));
		by_rank_room = room;
	}
	if (cr_endpoints_count == endpoints_room) {
		grown = realloc(cr_endpoints, (endpoints_room + 64) * sizeof(*cr_endpoints));
		if (!grown)
			return -ENOMEM;
		cr_endpoints = grown;
		endpoints_room += 64;
	}
	return 0;
}

cr_endpoint *cr_endpoint_get(uint32_t rank)
{
	cr_endpoint *ep = cr_endpoint_find(rank);

	if (ep)
		return ep;
	if (make_tables(rank))
		return NULL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return NULL;
	ep->rank = rank;
	ep->fd = -1;
	OBJ_CONSTRUCT(&ep->queue, opal_list_t);
	by_rank[rank] = ep;
	cr_endpoints[cr_endpoints_count++] = ep;
	return ep;
}

bool cr_endpoint_near(const cr_endpoint *ep)
{
	return cr_param.shm && ep->address.inbox >= 0 && cr_address_own.inbox >= 0 &&
	       ep->address.node == cr_address_own.node;
}

int cr_endpoint_resolve(cr_endpoint *ep)
{
	int rc;

	if (!ep->address.version) {
		rc = cr_address_find(ep->rank, &ep->address);
		if (rc)
			return rc;
		ep->cma = cr_param.cma;
	}
	if (!ep->module)
		ep->module = cr_endpoint_near(ep) ? &cr_module_near : &cr_module_far;
	return 0;
}

void cr_endpoint_forget(cr_endpoint *ep)
{
	ep->channel = CR_CHANNEL_NONE;
	cr_tcp_drop(ep);
	if (cr_param.seal)
		cr_seal_forget(ep);
	memset(&ep->address, 0, sizeof(ep->address));
	ep->no_ring = ep->lost = false;
	ep->attempt = 0;
	ep->retry_at = ep->failing_since = 0;
}

void cr_endpoints_renew(void)
{
	waiting = NULL;
	cr_endpoints_failing = false;
	for (unsigned int i = 0; i < cr_endpoints_count; i++) {
		cr_endpoint *ep = cr_endpoints[i];

		free(ep->stream.data);
		*ep = (cr_endpoint){ .rank = ep->rank, .fd = -1 };
		OBJ_CONSTRUCT(&ep->queue, opal_list_t);
	}
}

void cr_endpoint_retry(cr_endpoint *ep, int error)
{
	int64_t now = cr_now();

	if (!ep->failing_since) {
		ep->failing_since = now;
		ep->failures = 0;
	}
	ep->retry_at = now + RETRY_NS;
	ep->attempt++;
	ep->failures++;
	/* No upcalls from the thread that closed the gate: the peer is tried again later. */
	if (ep->failures >= TRIES && !cr_gate_mine() &&
	    now - ep->failing_since > cr_param.connect_timeout * 1000000000LL)
		cr_fatal(ep, "cannot connect", error);
}

/*
 * To the inbox of a peer on this node; `anew`: only to another one than before.  0, -EAGAIN: there is
 * none at present, or -errno: never.
 */
static int attach(cr_endpoint *ep, bool anew)
{
	int rc = cr_ring_attach(ep, anew);

	if (!rc) {
		ep->channel = CR_CHANNEL_RING;
		ep->retry_at = ep->failing_since = 0;
	} else if (rc != -EAGAIN) {
		ep->no_ring = true;
	}
	return rc;
}

bool cr_endpoint_rejoin(cr_endpoint *ep)
{
	return ep->sent && ep->channel == CR_CHANNEL_NONE && ep->tcp_state == CR_TCP_DOWN &&
	       ep->address.version && cr_endpoint_near(ep) && !ep->no_ring &&
	       attach(ep, true) == -EAGAIN;
}

/* Chooses the channel and begins to connect it. */
static int connect_channel(cr_endpoint *ep)
{
	int rc;

	if (ep->lost)
		return cr_tcp_failed(ep, -ECONNRESET);
	if (ep->retry_at && cr_now() < ep->retry_at)
		return -EAGAIN;
	rc = cr_endpoint_resolve(ep);
	if (rc) {
		cr_fatal(ep, "the peer's address is not known", rc);
		return rc;
	}
	if (cr_endpoint_near(ep) && !ep->no_ring) {
		rc = attach(ep, false);
		if (rc == -EAGAIN)	/* the peer may be in a checkpoint: retry later */
			ep->retry_at = cr_now() + RETRY_NS;
		if (!rc || rc == -EAGAIN)
			return rc;
	}
	if (ep->tcp_state == CR_TCP_DOWN) {
		rc = cr_tcp_connect(ep);
		if (rc) {
			cr_endpoint_retry(ep, rc);
			return rc;
		}
		if (ep->tcp_state == CR_TCP_DOWN)	/* it has failed already */
			return -EAGAIN;
	}
	ep->channel = CR_CHANNEL_TCP;
	return 0;
}

static int write_frag(cr_endpoint *ep, struct cr_frag *frag)
{
	if (ep->channel == CR_CHANNEL_RING)
		return cr_ring_write(ep, frag);
	if (ep->channel == CR_CHANNEL_NONE && connect_channel(ep))
		return 0;
	if (ep->channel == CR_CHANNEL_RING)
		return cr_ring_write(ep, frag);
	return cr_tcp_write(ep, frag);
}

int cr_endpoint_post(cr_endpoint *ep, struct cr_frag *frag)
{
	frag->ep = ep;
	if (cr_endpoint_idle(ep) && write_frag(ep, frag)) {
		if (frag->base.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK && frag->base.des_cbfunc) {
			cr_later_complete(frag);
			return OPAL_SUCCESS;
		}
		cr_module_complete(frag);
		return 1;
	}
	frag->base.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	opal_list_append(&ep->queue, (opal_list_item_t *)frag);
	if (!ep->waiting) {
		ep->waiting = true;
		ep->next_waiting = waiting;
		waiting = ep;
	}
	return OPAL_SUCCESS;
}

int cr_endpoint_flush(cr_endpoint *ep)
{
	int count = 0;

	if (ep->blocked)
		return 0;
	while (!cr_endpoint_idle(ep)) {
		struct cr_frag *frag = (struct cr_frag *)opal_list_get_first(&ep->queue);

		if (!write_frag(ep, frag))
			break;
		opal_list_remove_first(&ep->queue);
		cr_module_complete(frag);
		count++;
	}
	return count;
}

int cr_endpoint_flush_waiting(void)
{
	cr_endpoint *list = waiting, *ep;
	int count = 0;

	waiting = NULL;		/* completions may post more */
	cr_endpoints_failing = false;
	while ((ep = list)) {
		list = ep->next_waiting;
		count += cr_endpoint_flush(ep);
		cr_endpoints_failing |= ep->failing_since != 0;
		if (cr_endpoint_idle(ep)) {
			ep->waiting = false;
		} else {
			ep->next_waiting = waiting;
			waiting = ep;
		}
	}
	return count;
}

void cr_endpoint_receive(cr_endpoint *ep, const struct cr_frame *frame, void *payload)
{
	if (OPAL_UNLIKELY(!ep->module) && cr_endpoint_resolve(ep)) {
		cr_fatal(ep, "the peer's address is not known", -ENOENT);
		return;
	}
	switch (frame->type) {
	case CR_FRAME_SEND:
		cr_compat_receive(ep->module, ep, frame->tag, payload, frame->length);
		break;
	case CR_FRAME_GET:
		if (frame->length < sizeof(struct cr_rdma) + sizeof(struct cr_get_from)) {
			cr_fatal(ep, "a frame is too short", -EPROTO);
			break;
		}
		cr_module_answer_get(ep, payload,
				     (const void *)((const struct cr_rdma *)payload + 1));
		break;
	default:
		cr_fatal(ep, "received a frame of unknown type", -EPROTO);
	}
}
