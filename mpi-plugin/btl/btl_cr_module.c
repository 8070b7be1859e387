// SPDX-License-Identifier: GPL-2.0
/*
 * What Open MPI calls.  There are two modules, because the message layer takes limits
 * and capabilities from a module, not from a peer: one for peers on this node, one
 * for the others.  A peer keeps its first module; after a restart either works over
 * either kind of channel.
 */
#include "btl_cr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "btl_cr_frag.h"
#include "btl_cr_gate.h"
#include "btl_cr_tcp.h"

#define KEPT_MAX 64		/* frames for a peer: see keep() */

/*
 * If there are rings, sockets are polled in every nth round only; but in each while a peer refuses:
 * it may be the one that connects, and waits for this rank to answer.
 */
#define TCP_TURN 8
#define LISTENER_TURN 256	/* no connection yet */
#define LISTENER_NS 50000	/* nor before this time since: the call costs as much as a message */

mca_btl_base_module_error_cb_fn_t cr_module_error;
bool cr_module_ready, cr_module_drained;

/* ---- descriptors ------------------------------------------------------------ */

void cr_module_complete(struct cr_frag *frag)
{
	/* the callback may return it to its list */
	bool own = frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if (OPAL_UNLIKELY(frag->kept)) {
		frag->kept = false;
		frag->ep->kept--;
	}
	if (OPAL_UNLIKELY(frag->copy)) {
		free(frag->copy);
		frag->copy = NULL;
	}
	if (frag->base.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK && frag->base.des_cbfunc)
		frag->base.des_cbfunc(frag->ep->module, frag->ep, &frag->base, OPAL_SUCCESS);
	if (own)
		cr_frag_return(frag);
}

static mca_btl_base_descriptor_t *cr_alloc(mca_btl_base_module_t *module, cr_endpoint *ep,
					   uint8_t order, size_t size, uint32_t flags)
{
	struct cr_frag *frag;

	(void)ep;
	(void)order;
	if (size > module->btl_max_send_size)
		return NULL;
	frag = cr_frag_get(size);
	return frag ? cr_frag_describe(frag, size, flags) : NULL;
}

static int cr_free(mca_btl_base_module_t *module, mca_btl_base_descriptor_t *descriptor)
{
	(void)module;
	cr_frag_return((struct cr_frag *)descriptor);
	return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *cr_prepare_src(mca_btl_base_module_t *module, cr_endpoint *ep,
						 opal_convertor_t *convertor, uint8_t order,
						 size_t reserve, size_t *size, uint32_t flags)
{
	bool pack = opal_convertor_need_buffers(convertor);
	size_t length = *size;
	struct iovec iov;
	uint32_t count = 1;
	struct cr_frag *frag;

	(void)order;
	(void)ep;
	if (length + reserve > module->btl_max_send_size)
		length = module->btl_max_send_size - reserve;
	frag = cr_frag_get(reserve + (pack ? length : 0));
	if (!frag)
		return NULL;
	cr_frag_describe(frag, reserve, flags);
	iov.iov_base = pack ? (char *)(frag + 1) + reserve : NULL;
	iov.iov_len = length;
	if (opal_convertor_pack(convertor, &iov, &count, &length) < 0) {
		cr_frag_return(frag);
		return NULL;
	}
	if (pack) {
		frag->segments[0].seg_len += length;
	} else {
		frag->segments[1].seg_addr.pval = iov.iov_base;
		frag->segments[1].seg_len = length;
		frag->base.des_segment_count = 2;
	}
	*size = length;
	return &frag->base;
}

/* ---- sending ---------------------------------------------------------------- */

static void leave(void)
{
	cr_gate_leave();
	if (OPAL_UNLIKELY(cr_gate.threaded))
		cr_later_settle();
}

static int post(cr_endpoint *ep, struct cr_frag *frag)
{
	int rc;

	while (OPAL_UNLIKELY(!cr_gate_grab())) {
		if (!cr_gate_is_opened()) {
			cr_later_post(ep, frag);
			return OPAL_SUCCESS;
		}
	}
	cr_later_take_posted();
	rc = cr_endpoint_post(ep, frag);
	leave();
	return rc;
}

static int cr_send(mca_btl_base_module_t *module, cr_endpoint *ep,
		   mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct cr_frag *frag = (struct cr_frag *)descriptor;

	(void)module;
	cr_frag_head(frag, CR_FRAME_SEND, tag, 0);
	for (size_t i = 0; i < descriptor->des_segment_count; i++)
		cr_frag_add(frag, frag->segments[i].seg_addr.pval, frag->segments[i].seg_len);
	return post(ep, frag);
}

/* The socket accepted only a part: keeps the rest. */
static bool keep_rest(cr_endpoint *ep, const struct iovec iov[3], size_t total, size_t written)
{
	struct cr_frag *frag = cr_frag_copy(iov, total, written);

	if (!frag)
		return false;
	frag->iov[0].iov_base = frag + 1;
	frag->iov[0].iov_len = total - written;
	frag->iov_count = 1;
	frag->iov_next = 0;
	frag->begun = true;
	frag->sealed = 0;
	cr_endpoint_post(ep, frag);
	return true;
}

/*
 * A small message is queued as a copy, and sent as far as its sender is concerned.  Otherwise that
 * waits, and what is received meanwhile may need what it holds: osc/pt2pt of Open MPI 4.1 answers
 * MPI_Compare_and_swap() with its lock held, which the next request takes.
 */
static bool keep(cr_endpoint *ep, const struct iovec iov[3], size_t total)
{
	const struct cr_frame *frame = iov[0].iov_base;
	struct cr_frag *frag;

	if (total > CR_EAGER_NEAR || ep->kept >= KEPT_MAX)
		return false;
	frag = cr_frag_copy(iov, total, sizeof(*frame));
	if (!frag)
		return false;
	cr_frag_head(frag, frame->type, frame->tag, 0);
	cr_frag_add(frag, frag + 1, total - sizeof(*frame));
	frag->kept = true;
	ep->kept++;
	cr_endpoint_post(ep, frag);
	return true;
}

/* Is the peer known, but out of reach for now, as after a checkpoint? */
static bool away(const cr_endpoint *ep)
{
	return (ep->sent || ep->received) &&
	       (ep->channel == CR_CHANNEL_NONE ||
		(ep->channel == CR_CHANNEL_TCP && ep->tcp_state != CR_TCP_UP));
}

/* With seals a frame is kept until it is sent (btl_cr_seal.c), so it needs a descriptor. */
static bool send_now(cr_endpoint *ep, struct cr_frame *frame, void *header, size_t header_size,
		     void *payload, size_t payload_size)
{
	const struct iovec iov[3] = {
		{ frame, sizeof(*frame) }, { header, header_size }, { payload, payload_size },
	};
	size_t total = sizeof(*frame) + header_size + payload_size, written;

	if (OPAL_UNLIKELY(!cr_endpoint_idle(ep)))
		return keep(ep, iov, total);
	if (OPAL_LIKELY(ep->channel == CR_CHANNEL_RING))
		return cr_ring_put(ep, frame, header, header_size, payload, payload_size);
	if (away(ep))
		return keep(ep, iov, total);
	if (ep->channel != CR_CHANNEL_TCP || ep->tcp_state != CR_TCP_UP || cr_param.seal)
		return false;
	written = cr_tcp_send(ep, iov, payload_size ? 3 : 2);
	if (written == total || !written)
		return written;
	if (!keep_rest(ep, iov, total, written))
		cr_fatal(ep, "out of memory", -ENOMEM);
	return true;
}

/* Sends at once and without a descriptor, or returns a descriptor instead. */
static int cr_sendi(mca_btl_base_module_t *module, cr_endpoint *ep, opal_convertor_t *convertor,
		    void *header, size_t header_size, size_t payload_size, uint8_t order,
		    uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
	struct cr_frame frame = {
		.length = header_size + payload_size, .tag = tag, .type = CR_FRAME_SEND,
	};
	void *payload = NULL;
	bool sent = false;

	if (OPAL_UNLIKELY(!cr_gate_grab()))
		goto later;
	cr_later_take_posted();
	if (OPAL_LIKELY(header_size + payload_size <= module->btl_eager_limit &&
			(!payload_size || !opal_convertor_need_buffers(convertor)))) {
		if (payload_size)
			opal_convertor_get_current_pointer(convertor, &payload);
		sent = send_now(ep, &frame, header, header_size, payload, payload_size);
	}
	leave();
	if (OPAL_LIKELY(sent))
		return OPAL_SUCCESS;
later:
	if (descriptor)
		*descriptor = cr_alloc(module, ep, order, header_size + payload_size, flags);
	return OPAL_ERR_OUT_OF_RESOURCE;
}

static void put_done(mca_btl_base_module_t *module, cr_endpoint *ep,
		     mca_btl_base_descriptor_t *descriptor, int status)
{
	struct cr_frag *frag = (struct cr_frag *)descriptor;

	frag->done(module, ep, frag->local, frag->handle, frag->context, frag->data, status);
}

static int cr_put(mca_btl_base_module_t *module, cr_endpoint *ep, void *local, uint64_t remote,
		  mca_btl_base_registration_handle_t *local_handle,
		  mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		  int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	struct cr_frag *frag = cr_frag_bare();

	(void)module;
	(void)remote_handle;
	(void)flags;
	(void)order;
	if (!frag)
		return OPAL_ERR_OUT_OF_RESOURCE;
	cr_frag_head(frag, CR_FRAME_PUT, 0, sizeof(frag->head.rdma));
	frag->head.rdma = (struct cr_rdma){ .address = remote };
	cr_frag_add(frag, local, size);
	frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	frag->base.des_cbfunc = put_done;
	frag->done = done;
	frag->context = context;
	frag->data = data;
	frag->local = local;
	frag->handle = local_handle;
	post(ep, frag);
	return OPAL_SUCCESS;
}

void cr_module_answer_get(cr_endpoint *ep, const struct cr_rdma *what,
			  const struct cr_get_from *from)
{
	struct cr_frag *frag = cr_frag_bare();
	struct cr_get_from want;
	struct cr_rdma rdma;

	if (!frag) {
		cr_fatal(ep, "out of memory", -ENOMEM);
		return;
	}
	memcpy(&rdma, what, sizeof(rdma));
	memcpy(&want, from, sizeof(want));
	cr_frag_head(frag, CR_FRAME_REPLY, 0, sizeof(frag->head.rdma));
	frag->head.rdma = (struct cr_rdma){ .address = want.local, .id = rdma.id };
	cr_frag_add(frag, (void *)(uintptr_t)rdma.address, want.size);
	frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
	frag->base.des_cbfunc = NULL;
	cr_endpoint_post(ep, frag);
}

int cr_module_ask(cr_endpoint *ep, uint64_t remote, void *local, size_t size, uint64_t id)
{
	struct cr_frag *frag = cr_frag_bare();

	if (!frag)
		return -ENOMEM;
	cr_frag_head(frag, CR_FRAME_GET, 0, sizeof(frag->head.rdma) + sizeof(frag->head.from));
	frag->head.rdma = (struct cr_rdma){ .address = remote, .id = id };
	frag->head.from = (struct cr_get_from){ .local = (uintptr_t)local, .size = size };
	frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
	frag->base.des_cbfunc = NULL;
	cr_endpoint_post(ep, frag);
	return 0;
}

/* ---- peers ------------------------------------------------------------------ */

static int cr_add_procs(mca_btl_base_module_t *module, size_t count, opal_proc_t **procs,
			cr_endpoint **peers, opal_bitmap_t *reachable)
{
	opal_process_name_t own = opal_proc_local_get()->proc_name;
	int rc = OPAL_SUCCESS;

	cr_gate_enter();
	for (size_t i = 0; i < count && rc == OPAL_SUCCESS; i++) {
		opal_process_name_t name = procs[i]->proc_name;
		cr_endpoint *ep;

		peers[i] = NULL;
		if (name.jobid != own.jobid || name.vpid == own.vpid)
			continue;
		ep = cr_endpoint_get(name.vpid);
		if (!ep) {
			rc = OPAL_ERR_OUT_OF_RESOURCE;
			break;
		}
		if (cr_endpoint_resolve(ep) || ep->module != module)
			continue;
		peers[i] = ep;
		if (reachable)
			rc = opal_bitmap_set_bit(reachable, i);
	}
	leave();
	return rc;
}

/* Endpoints stay: their counters are part of the job's state. */
static int cr_del_procs(mca_btl_base_module_t *module, size_t count, opal_proc_t **procs,
			cr_endpoint **peers)
{
	(void)module;
	(void)count;
	(void)procs;
	(void)peers;
	return OPAL_SUCCESS;
}

static int cr_register_error(mca_btl_base_module_t *module, mca_btl_base_module_error_cb_fn_t call)
{
	(void)module;
	cr_module_error = call;
	return OPAL_SUCCESS;
}

static int cr_finalize(mca_btl_base_module_t *module)
{
	(void)module;
	cr_gate_enter();
	if (cr_module_ready) {
		cr_module_ready = false;
		cr_ring_close();
		cr_tcp_close();
	}
	cr_gate_leave();
	return OPAL_SUCCESS;
}

/* ---- progress --------------------------------------------------------------- */

static int deliver_streams(void)
{
	int count = 0;

	cr_module_drained = false;
	for (unsigned int i = 0; i < cr_endpoints_count; i++)
		if (cr_stream_pending(cr_endpoints[i]))
			count += cr_stream_deliver(cr_endpoints[i]);
	return count;
}

static bool listener_waited(void)
{
	static uint64_t last;		/* after a restart perhaps a time to come */
	uint64_t now = cr_now();

	if (now - last < LISTENER_NS)
		return false;
	last = now;
	return true;
}

/* Are sockets to be polled in this round? */
static inline bool is_tcp_turn(void)
{
	static unsigned int round;

	if (!cr_ring_count || cr_endpoints_failing)
		return true;
	if (cr_tcp_count)
		return ++round % TCP_TURN == 0;
	return OPAL_UNLIKELY(++round % LISTENER_TURN == 0) && listener_waited();
}

int cr_module_progress(void)
{
	static bool busy;
	int count = 0;

	if (!cr_gate_try())
		return 0;
	if (OPAL_UNLIKELY(busy || !cr_module_ready)) {
		leave();
		return 0;
	}
	busy = true;
	cr_later_take_posted();
	if (OPAL_UNLIKELY(cr_module_drained))
		count += deliver_streams();
	count += cr_ring_progress();
	if (is_tcp_turn())
		count += cr_tcp_progress();
	count += cr_endpoint_flush_waiting();
	count += cr_later_completed();
	busy = false;
	leave();
	return count;
}

/* ---- the modules ------------------------------------------------------------ */

#define MODULE_CALLS						\
	.btl_component = &mca_btl_cr_component,			\
	.btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1,	\
	.btl_add_procs = cr_add_procs,				\
	.btl_del_procs = cr_del_procs,				\
	.btl_finalize = cr_finalize,				\
	.btl_alloc = cr_alloc,					\
	.btl_free = cr_free,					\
	.btl_prepare_src = cr_prepare_src,			\
	.btl_send = cr_send,					\
	.btl_sendi = cr_sendi,					\
	.btl_register_error = cr_register_error

mca_btl_base_module_t cr_module_near = {
	MODULE_CALLS,
	.btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_GET,
	.btl_get = cr_get,
	.btl_get_limit = CR_RDMA_MAX,
	.btl_eager_limit = CR_EAGER_NEAR,
	.btl_rndv_eager_limit = CR_MAX_NEAR,
	.btl_max_send_size = CR_MAX_NEAR,
	.btl_min_rdma_pipeline_size = INT_MAX,
	.btl_rdma_pipeline_send_length = CR_MAX_NEAR,
	.btl_rdma_pipeline_frag_size = CR_MAX_NEAR,
	.btl_latency = 1,
	.btl_bandwidth = 10000,
};

mca_btl_base_module_t cr_module_far = {
	MODULE_CALLS,
	.btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_PUT,
	.btl_put = cr_put,
	.btl_put_limit = CR_RDMA_MAX,
	.btl_eager_limit = CR_EAGER_FAR,
	.btl_rndv_eager_limit = CR_EAGER_FAR,
	.btl_max_send_size = CR_MAX_FAR,
	.btl_rdma_pipeline_send_length = CR_MAX_FAR,
	.btl_rdma_pipeline_frag_size = CR_RDMA_MAX,
	.btl_latency = 100,
	.btl_bandwidth = 100,
};

/* With sessions (Open MPI 5.0) MPI may begin several times, with new addresses. */
static void begin_again(void)
{
	cr_endpoints_renew();
	cr_later_forget();
	cr_address_forget(false);
	cr_module_drained = false;
}

int cr_module_open(bool threads)
{
	int rc = seal_init();

	if (rc)
		return rc;
	begin_again();
	if (cr_frag_init())
		return -ENOMEM;
	if (cr_param.seal) {
		cr_module_near.btl_get_limit = CR_SEAL_RDMA_MAX;
		cr_module_far.btl_put_limit = CR_SEAL_RDMA_MAX;
		cr_module_far.btl_rdma_pipeline_frag_size = CR_SEAL_RDMA_MAX;
	}
	cr_gate_init(threads || cr_compat_threads());
	rc = cr_module_ends();
	if (!rc)
		cr_module_ready = true;
	return rc;
}

int cr_module_tracer(int pid)
{
	/* The other ranks of the node copy from this one's memory.  Without Yama this fails. */
	if (cr_param.shm && cr_param.cma)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	else if (pid)
		prctl(PR_SET_PTRACER, pid, 0, 0, 0);
	return 0;
}

int cr_module_ends(void)
{
	int rc = cr_address_make();

	if (!rc && cr_param.shm) {
		rc = cr_ring_open();
		cr_module_tracer(0);
	}
	if (!rc)
		rc = cr_tcp_open();
	return rc;
}
