// SPDX-License-Identifier: GPL-2.0
/*
 * With btl_cr_seal, every frame sent by TCP has a tag at its end, which only the
 * two ranks can compute, and is used only when it is complete and checked: nothing can
 * be changed, inserted or dropped on the way.  Rings need none: only the peer writes there.
 *
 * A frame keeps the form in which it was begun.  If the job is saved in the middle of a
 * frame, the rest arrives after the restart, maybe on a channel of the other kind: a
 * sealed one is then checked with the keys of the old connection, and the rest of a plain
 * one, whose length is known, is accepted as it is.
 */
#include "btl_cr_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX (CR_SEAL_RDMA_MAX + 4096)	/* bytes after the header */

void cr_seal_begin(cr_endpoint *ep, const uint8_t key[CR_ADDRESS_KEY],
		   const struct cr_tcp_meeting *meeting)
{
	struct cr_seals *seals = &ep->seals;
	bool connects = meeting->from != ep->rank;

	seals->in.number = seals->out.number = 0;
	cr_tcp_prove(connects ? seals->out.key : seals->in.key, key, "kcr-mpi key to port", meeting);
	cr_tcp_prove(connects ? seals->in.key : seals->out.key, key, "kcr-mpi key from port", meeting);
	seals->life++;
}

/* ---- sending ---------------------------------------------------------------- */

/* It may have been sealed for a connection that is lost. */
void cr_seal_strip(struct cr_frag *frag)
{
	if (!frag->sealed)
		return;
	frag->sealed = 0;
	frag->head.frame.form = CR_FORM_PLAIN;
	frag->head.frame.length -= SEAL_TAG;
	frag->iov_count--;
}

/*
 * What is sent is to be what the tag was made for: a window's memory may be written to meanwhile,
 * by its owner or by other ranks.
 */
static int keep(struct cr_frag *frag)
{
	unsigned char *at;

	if (frag->copy || frag->iov_count == 1 ||
	    (frag->iov_count == 2 && frag->iov[1].iov_base == frag + 1))
		return 0;
	at = frag->copy = malloc(sizeof(frag->head.frame) + frag->head.frame.length);
	if (!at)
		return -ENOMEM;
	for (unsigned int i = 1; i < frag->iov_count; i++) {
		memcpy(at, frag->iov[i].iov_base, frag->iov[i].iov_len);
		at += frag->iov[i].iov_len;
	}
	frag->iov[1].iov_base = frag->copy;
	frag->iov[1].iov_len = at - frag->copy;
	frag->iov_count = 2;
	return 0;
}

int cr_seal_frag(cr_endpoint *ep, struct cr_frag *frag)
{
	struct cr_frame *frame = &frag->head.frame;

	if (frag->sealed == ep->seals.life)
		return 0;
	cr_seal_strip(frag);
	if (keep(frag))
		return -ENOMEM;
	frame->form = CR_FORM_SEALED;
	frame->length += SEAL_TAG;
	seal_make(&ep->seals.out, frag->iov, frag->iov_count, frag->tag);
	frag->iov[frag->iov_count].iov_base = frag->tag;
	frag->iov[frag->iov_count++].iov_len = SEAL_TAG;
	frag->sealed = ep->seals.life;
	return 0;
}

/* ---- receiving -------------------------------------------------------------- */

static int check_frames(cr_endpoint *ep)
{
	struct cr_seals *seals = &ep->seals;
	struct cr_frame frame;

	if (seals->unchecked > ep->stream.end - ep->stream.begin)
		return -EBADMSG;
	while (seals->unchecked >= sizeof(frame)) {
		unsigned char *at = ep->stream.data + ep->stream.end - seals->unchecked;
		struct iovec part = { .iov_base = at };

		memcpy(&frame, at, sizeof(frame));
		if (frame.form != CR_FORM_SEALED || frame.length < SEAL_TAG ||
		    frame.length > FRAME_MAX)
			return -EBADMSG;
		if (seals->unchecked < sizeof(frame) + frame.length)
			break;
		part.iov_len = sizeof(frame) + frame.length - SEAL_TAG;
		if (seal_check(seals->has_old ? &seals->old : &seals->in, &part, 1,
			       at + part.iov_len))
			return -EBADMSG;
		seals->has_old = false;
		seals->unchecked -= sizeof(frame) + frame.length;
	}
	return 0;
}

/* A drain only reports it: what is left here would be delivered when the gate is open again. */
static int discard(cr_endpoint *ep)
{
	struct cr_stream *stream = &ep->stream;
	size_t length = stream->end - stream->begin;

	stream->end -= ep->seals.unchecked < length ? ep->seals.unchecked : length;
	ep->seals.unchecked = 0;
	ep->seals.broken = true;
	return -EBADMSG;
}

int cr_seal_arrived(cr_endpoint *ep, size_t length, bool by_tcp)
{
	struct cr_seals *seals = &ep->seals;
	size_t plain = length < seals->plain_left ? length : seals->plain_left;

	if (seals->broken) {
		seals->unchecked = length;
		return discard(ep);
	}
	seals->plain_left -= plain;
	length -= plain;
	if (!length || (!by_tcp && !seals->unchecked))
		return 0;
	seals->unchecked += length;
	return check_frames(ep) ? discard(ep) : 0;
}

void cr_seal_forget(cr_endpoint *ep)
{
	struct cr_seals *seals = &ep->seals;

	if (!seals->unchecked && !seals->plain_left)
		seals->plain_left = cr_stream_missing(&ep->stream);
	if (!seals->unchecked || seals->has_old)
		return;
	seals->old = seals->in;
	seals->has_old = true;
}
