/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wire format of btl/cr, the same on every kind of channel, so that a frame
 * begun on one can end on another.
 *
 * A channel carries a stream of frames: a header, then length bytes.  In a ring
 * (btl_cr_ring.c) a frame is contiguous, after a stamp that marks it as
 * complete; a frame that does not fit, or was begun elsewhere, goes through a
 * ring as RAW frames, whose contents are the stream.
 */
#ifndef MCA_BTL_CR_FRAME_H
#define MCA_BTL_CR_FRAME_H

#include <stdint.h>

enum {
	CR_FRAME_SEND = 1,	/* for the callback registered for tag */
	CR_FRAME_PUT,		/* cr_rdma, then data for its address */
	CR_FRAME_GET,		/* cr_rdma (what to read), cr_get_from */
	CR_FRAME_REPLY,		/* as PUT; completes the get named by id */
	CR_FRAME_RAW,		/* only in rings: a piece of the stream */
	CR_FRAME_PAD,		/* only in rings: nothing, up to the ring's end */
};

enum {
	CR_FORM_PLAIN,
	CR_FORM_SEALED,		/* ends with a tag (btl_cr_seal.c) */
};

struct cr_frame {
	uint32_t length;	/* of what follows the header, < 2^31 */
	uint8_t tag;
	uint8_t type;
	uint16_t form;
};
_Static_assert(sizeof(struct cr_frame) == 8, "wire format");

struct cr_rdma {
	uint64_t address;	/* in the process that gets the frame */
	uint64_t id;		/* of a get, chosen by the requester */
};
_Static_assert(sizeof(struct cr_rdma) == 16, "wire format");

struct cr_get_from {
	uint64_t local;		/* where to put the reply */
	uint64_t size;
};
_Static_assert(sizeof(struct cr_get_from) == 16, "wire format");

/* Limit of one put or get; callers split longer ones. */
#define CR_RDMA_MAX (1UL << 30)
/* With seals: a whole frame is buffered until its end has arrived. */
#define CR_SEAL_RDMA_MAX (1UL << 20)

#endif
