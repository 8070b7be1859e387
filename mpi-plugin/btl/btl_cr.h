/* SPDX-License-Identifier: GPL-2.0 */
/*
 * btl/cr: an Open MPI transport whose channels can be drained, closed and
 * rebuilt without the message layer above noticing.  This header names its objects:
 *
 *	component  parameters, start and end of the component
 *	module     what Open MPI calls: send, put, get
 *	frag       descriptors of what is to be sent            (btl_cr_frag.h)
 *	gate       lets threads in and keeps them out           (btl_cr_gate.h)
 *	endpoint   a peer: queue of descriptors, choice of the channel, byte counters
 *	stream     received bytes until they are whole frames
 *	tcp, ring  the kinds of channel: sockets; shared memory of one node
 *	address    how a rank is reached, on which node it is
 *	control    what the checkpoint thread calls            (btl_cr_control.h)
 *
 * Everything here is protected by the gate: by being inside, or, in the
 * checkpoint thread, by having closed it.  Functions return 0 or -errno unless
 * they say otherwise.
 */
#ifndef MCA_BTL_CR_H
#define MCA_BTL_CR_H

#include "btl_cr_compat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "btl_cr_frame.h"
#include "job/secret/seal.h"

struct cr_param {
	bool enable;
	bool shm;		/* rings between ranks of one node */
	bool cma;		/* process_vm_readv there */
	int node;		/* mixed into the identity of the node */
	unsigned int ring_size;	/* bytes, a power of two */
	char *if_include;	/* interfaces for TCP, comma-separated; empty: all needed */
	bool seal;		/* frames sent by TCP are authenticated */
	int connect_timeout;	/* seconds */
	int lost_timeout;	/* seconds */
};
extern struct cr_param cr_param;

/* ---- addresses -------------------------------------------------------------- */

#define CR_ADDRESS_NETS 8
#define CR_ADDRESS_KEY 16	/* bytes */

struct cr_address_net {
	uint8_t family;
	uint8_t prefix;		/* bits */
	uint16_t port;
	uint8_t loopback;
	uint8_t reserved[3];
	uint8_t bytes[16];
};

struct cr_address {
	uint32_t version;
	uint32_t pid;
	uint8_t key[CR_ADDRESS_KEY];	/* peers that connect must know it */
	uint64_t node;		/* equal: same kernel, same namespaces */
	int32_t inbox;		/* file descriptor of the shared memory, or -1 */
	uint32_t nets_count;
	struct cr_address_net nets[CR_ADDRESS_NETS];
};

extern struct cr_address cr_address_own;

int cr_address_make(void);	/* all except ports and inbox, which their objects fill in */
int cr_address_check(const void *address, size_t length);
/*
 * The address of rank: from the modex, or since the last restart from the book, in which it is
 * waited for.  Who has closed the gate does not wait: -EAGAIN.
 */
int cr_address_find(uint32_t rank, struct cr_address *address);
/* In any thread. */
int cr_address_enter(uint32_t rank, const struct cr_address *address);
void cr_address_forget(bool restarted);	/* all are void: the job is restarted, or MPI begins again */
void cr_address_source(int (*ask)(uint32_t rank));	/* of addresses not in the book */
/* The nth best socket address to reach address at; wraps around. */
socklen_t cr_address_socket(const struct cr_address *address, unsigned int nth,
			    struct sockaddr_storage *socket);

/* ---- received bytes --------------------------------------------------------- */

struct cr_stream {
	unsigned char *data;
	size_t begin, end, room;
	unsigned char *direct;	/* destination of the rest of a put */
	size_t direct_left;
	uint64_t reply;		/* the get that this completes, else 0 */
};

/*
 * Where to put up to *length of the next bytes; NULL: no memory.  It may be a
 * shared buffer: settle before another stream is used.
 */
void *cr_stream_space(struct cr_stream *stream, size_t *length);
int cr_stream_settle(struct cr_stream *stream);
void cr_stream_advance(struct cr_stream *stream, size_t length);
/* All or nothing. */
int cr_stream_append(struct cr_stream *stream, const void *data, size_t length);
/* Until the next call of another function, so much can be appended. */
int cr_stream_reserve(struct cr_stream *stream, size_t length);
/* How much of the last frame, begun on a ring, has not arrived. */
size_t cr_stream_missing(const struct cr_stream *stream);
/* Hands up all complete frames; returns their number. */
int cr_stream_deliver(struct mca_btl_base_endpoint_t *ep);

/* ---- peers ------------------------------------------------------------------ */

struct cr_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segments[2];
	struct mca_btl_base_endpoint_t *ep;
	opal_free_list_t *list;
	size_t room;			/* bytes after this structure */
	struct cr_frag *next_later;	/* see btl_cr_later.c */

	struct iovec iov[4];		/* what is still to be written */
	unsigned int iov_count, iov_next;
	bool begun;
	bool kept;			/* counted in ep->kept */
	uint32_t sealed;		/* cr_seals.life at that time; 0: not sealed */
	uint8_t tag[SEAL_TAG];
	unsigned char *copy;		/* of what the tag is for, or NULL */
	struct {
		struct cr_frame frame;
		struct cr_rdma rdma;
		struct cr_get_from from;
	} head;

	mca_btl_base_rdma_completion_fn_t done;	/* of a put */
	void *context, *data, *local;
	mca_btl_base_registration_handle_t *handle;
};

enum cr_channel { CR_CHANNEL_NONE, CR_CHANNEL_RING, CR_CHANNEL_TCP };
enum cr_tcp_state { CR_TCP_DOWN, CR_TCP_CONNECTING, CR_TCP_CALLED, CR_TCP_GREETING, CR_TCP_UP };

struct cr_ring_end {
	unsigned char *data;		/* NULL: not mapped */
	uint64_t at;			/* next byte to write or read */
	uint64_t seen;			/* writer: the reader's position, at least */
	uint64_t turn;			/* writer: where to look whether to turn back */
	uint64_t key;			/* of the stamps */
	struct cr_ring_shared *shared;
};

/* btl_cr_seal.c; nothing in here is used without that parameter. */
struct cr_seals {
	struct seal out, in;
	struct seal old;	/* of a frame partly received before the restart */
	bool has_old;
	uint32_t life;		/* of the keys, from 1 on */
	size_t unchecked;	/* bytes at the end of the stream: part of a sealed frame */
	size_t plain_left;	/* of a frame that was begun on a ring */
	bool broken;		/* a frame was changed: nothing more is believed */
};

typedef struct mca_btl_base_endpoint_t {
	enum cr_channel channel;	/* what is written to */
	struct cr_ring_end out, in;
	opal_list_t queue;		/* of cr_frag, not written yet */
	unsigned int kept;		/* of these, by cr_sendi() */
	uint64_t sent, received;	/* bytes of the stream since MPI_Init */
	struct cr_stream stream;
	struct cr_seals seals;

	mca_btl_base_module_t *module;	/* NULL: not resolved yet */
	uint32_t rank;
	bool waiting;			/* on the list of endpoints with a queue */
	bool cma;
	bool no_ring;			/* refused; until the next restart */
	uint32_t inbox_life;		/* of the inbox that we attached to last */
	struct cr_address address;
	int64_t retry_at, failing_since; /* monotonic ns; 0: now, not failing */

	enum cr_tcp_state tcp_state;
	int fd;
	struct cr_tcp_hello *hello;	/* while it connects */
	bool blocked;			/* the socket is full; epoll reports when it is not */
	bool lost;			/* the connection has ended: nothing more can arrive */
	unsigned int attempt;
	unsigned int failures;		/* attempts since failing_since */
	struct mca_btl_base_endpoint_t *next_waiting;
} cr_endpoint;

/* Is there anything to do for cr_stream_deliver()? */
static inline bool cr_stream_pending(const cr_endpoint *ep)
{
	return ep->stream.end != ep->stream.begin || ep->stream.reply || ep->seals.broken;
}

extern cr_endpoint **cr_endpoints;	/* in the order of creation */
extern unsigned int cr_endpoints_count;
extern bool cr_endpoints_failing;	/* some that have a queue could not be connected to */

cr_endpoint *cr_endpoint_get(uint32_t rank);	/* creates it if needed; NULL: no memory */
cr_endpoint *cr_endpoint_find(uint32_t rank);
int cr_endpoint_resolve(cr_endpoint *ep);	/* sets address and module */
/* Attaches again to a peer on this node that was sent to; true: it has no inbox yet. */
bool cr_endpoint_rejoin(cr_endpoint *ep);
bool cr_endpoint_near(const cr_endpoint *ep);	/* on this node, with shared memory */
/* Queues or writes frag: 1 if it is complete already, else OPAL_SUCCESS. */
int cr_endpoint_post(cr_endpoint *ep, struct cr_frag *frag);

/* A callback for cr_later_completed(), which progress calls; how many there were. */
void cr_later_complete(struct cr_frag *frag);
int cr_later_completed(void);
/* As cr_endpoint_post(), by a thread that could not enter; and by one that is inside, in their order. */
void cr_later_post(cr_endpoint *ep, struct cr_frag *frag);
void cr_later_take_posted(void);
/* Inside, for the checkpoint thread, which connects to nobody: what waits for no connection. */
void cr_later_take_ready(void);
/* Under MPI_THREAD_MULTIPLE, after each cr_gate_leave(): what came meanwhile waits for nobody. */
void cr_later_settle(void);
void cr_later_forget(void);		/* all of it: MPI begins again */

int cr_endpoint_flush(cr_endpoint *ep);		/* returns frames completed */
int cr_endpoint_flush_waiting(void);
void cr_endpoint_receive(cr_endpoint *ep, const struct cr_frame *frame, void *payload);
void cr_endpoint_forget(cr_endpoint *ep);	/* drops the channel; the stream stays */
/* All channels are closed, and MPI begins again in this process: the peers do so, too. */
void cr_endpoints_renew(void);
void cr_endpoint_retry(cr_endpoint *ep, int error);
int64_t cr_now(void);				/* monotonic, ns */
/* The job can't go on: makes Open MPI abort it. */
void cr_fatal(cr_endpoint *ep, const char *what, int error);

static inline bool cr_endpoint_idle(cr_endpoint *ep)
{
	return opal_list_is_empty(&ep->queue);
}

static inline void cr_frag_advance(struct cr_frag *frag, size_t length)
{
	frag->begun = true;
	while (frag->iov_next < frag->iov_count && length >= frag->iov[frag->iov_next].iov_len)
		length -= frag->iov[frag->iov_next++].iov_len;
	if (length) {
		frag->iov[frag->iov_next].iov_base =
			(char *)frag->iov[frag->iov_next].iov_base + length;
		frag->iov[frag->iov_next].iov_len -= length;
	}
}

/* ---- channels --------------------------------------------------------------- */

/* write: 1 all of frag is written, 0 not yet */
int cr_tcp_open(void);
void cr_tcp_close(void);		/* all sockets */
int cr_tcp_connect(cr_endpoint *ep);	/* begins to connect */
int cr_tcp_write(cr_endpoint *ep, struct cr_frag *frag);
/* Writes what the socket accepts at once; returns bytes, 0 for none. */
size_t cr_tcp_send(cr_endpoint *ep, const struct iovec *iov, unsigned int count);
int cr_tcp_progress(void);
int cr_tcp_handshakes(void);		/* progress of connections that are not up */
/* Receives what is available, without upcalls: bytes, 0 for none, -errno. */
ssize_t cr_tcp_pull(cr_endpoint *ep);
/* The connection to ep has failed, which ends the job after btl_cr_lost_timeout: returns error. */
int cr_tcp_failed(cr_endpoint *ep, int error);
/*
 * All that the peer has sent is here: if its connection has failed, that is no reason to end, unless
 * there is something to be sent to it.
 */
void cr_tcp_lost_nothing(cr_endpoint *ep);
void cr_tcp_drop(cr_endpoint *ep);
void cr_tcp_end(int fd);		/* of a connection that is counted in cr_tcp_count */
extern unsigned int cr_tcp_count;	/* of connections */

int cr_ring_open(void);
void cr_ring_close(void);
int cr_ring_suspend(void);
int cr_ring_resume(void);
/* -EAGAIN: the peer is not ready, try later; other errors: it cannot be used. */
int cr_ring_attach(cr_endpoint *ep, bool anew);	/* `anew`: not to the inbox of last time */
int cr_ring_write(cr_endpoint *ep, struct cr_frag *frag);
int cr_ring_progress(void);
int cr_ring_accept(void);
int cr_ring_pull(cr_endpoint *ep);
void cr_ring_drop(cr_endpoint *ep);
/* Puts one whole frame, or returns false. */
bool cr_ring_put(cr_endpoint *ep, const struct cr_frame *frame,
		 const void *first, size_t first_length,
		 const void *second, size_t second_length);
extern unsigned int cr_ring_count;	/* of rings to read from */

/* ---- module ----------------------------------------------------------------- */

/* For peers that were on this node, or elsewhere, when they were first added. */
extern mca_btl_base_module_t cr_module_near, cr_module_far;
extern mca_btl_base_component_3_0_0_t mca_btl_cr_component;
extern mca_btl_base_module_error_cb_fn_t cr_module_error;
extern bool cr_module_ready;
extern bool cr_module_drained;	/* streams hold what a drain received */

int cr_module_open(bool threads);
int cr_module_tracer(int pid);	/* under Yama: it may trace this process; 0: nobody but peers */
int cr_module_ends(void);	/* opens new ports and inbox, with a new address */
int cr_module_progress(void);
void cr_module_complete(struct cr_frag *frag);
void cr_module_answer_get(cr_endpoint *ep, const struct cr_rdma *what,
			  const struct cr_get_from *from);
/* Requests size bytes at remote, to be put at local. */
int cr_module_ask(cr_endpoint *ep, uint64_t remote, void *local, size_t size, uint64_t id);
int cr_get(mca_btl_base_module_t *module, cr_endpoint *ep, void *local, uint64_t remote,
	   mca_btl_base_registration_handle_t *local_handle,
	   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
	   mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
void cr_module_get_done(cr_endpoint *ep, uint64_t id);

#endif
