// SPDX-License-Identifier: GPL-2.0
/*
 * Received bytes until they are whole frames.  The drain adds to a stream
 * without looking into it; only cr_stream_deliver(), from within Open MPI's
 * progress, makes upcalls.  The data of a put or reply goes to its destination as
 * soon as its head has been parsed, even during a drain.
 *
 * As long as whole frames come in, all streams share one buffer; only what is
 * left between two reads is kept in a buffer of the stream's own.  A drain reads into
 * that at once: if there is no memory for it, nothing has been received.
 */
#include "btl_cr.h"

#include <stdlib.h>
#include <string.h>

#include "btl_cr_gate.h"

#define SPACE_MIN (64 * 1024)	/* for a read */
#define BEHIND 8			/* bytes: see hand_up() */

static unsigned char shared[256 * 1024];	/* between cr_stream_space and cr_stream_settle */

int cr_stream_settle(struct cr_stream *stream)
{
	size_t length = stream->end - stream->begin;
	unsigned char *data = NULL;

	if (stream->data != shared)
		return 0;
	if (length) {
		data = malloc(length + SPACE_MIN);
		if (!data)
			return -ENOMEM;
		memcpy(data, shared + stream->begin, length);
	}
	stream->data = data;
	stream->room = data ? length + SPACE_MIN : 0;
	stream->begin = 0;
	stream->end = length;
	return 0;
}

static int make_room(struct cr_stream *stream, size_t want)
{
	unsigned char *data;
	size_t room;

	if (stream->begin == stream->end)
		stream->begin = stream->end = 0;
	if (stream->room - stream->end >= want)
		return 0;
	if (cr_stream_settle(stream))
		return -ENOMEM;
	if (stream->begin) {
		memmove(stream->data, stream->data + stream->begin, stream->end - stream->begin);
		stream->end -= stream->begin;
		stream->begin = 0;
		if (stream->room - stream->end >= want)
			return 0;
	}
	room = stream->end + want + stream->room / 2;
	data = realloc(stream->data, room);
	if (!data)
		return -ENOMEM;
	stream->data = data;
	stream->room = room;
	return 0;
}

void *cr_stream_space(struct cr_stream *stream, size_t *length)
{
	if (stream->direct_left) {
		*length = stream->direct_left;
		return stream->direct;
	}
	if (stream->begin == stream->end && !cr_gate_mine()) {
		free(stream->data);
		stream->data = shared;
		stream->room = sizeof(shared);
		stream->begin = stream->end = 0;
	} else if (make_room(stream, SPACE_MIN)) {
		return NULL;
	}
	*length = stream->room - stream->end - BEHIND;
	return stream->data + stream->end;
}

void cr_stream_advance(struct cr_stream *stream, size_t length)
{
	if (stream->direct_left) {
		stream->direct += length;
		stream->direct_left -= length;
	} else {
		stream->end += length;
	}
}

int cr_stream_reserve(struct cr_stream *stream, size_t length)
{
	return length > stream->direct_left ?
	       make_room(stream, length - stream->direct_left + BEHIND) : 0;
}

int cr_stream_append(struct cr_stream *stream, const void *data, size_t length)
{
	size_t direct = length < stream->direct_left ? length : stream->direct_left;

	if (cr_stream_reserve(stream, length))
		return -ENOMEM;
	if (direct) {
		memcpy(stream->direct, data, direct);
		cr_stream_advance(stream, direct);
		data = (const char *)data + direct;
		length -= direct;
	}
	if (length)
		memcpy(stream->data + stream->end, data, length);
	stream->end += length;
	return 0;
}

/* The head of a put or reply has arrived: its data goes straight to its destination. */
static bool begin_direct(struct cr_stream *stream, const struct cr_frame *frame)
{
	unsigned char *at = stream->data + stream->begin + sizeof(*frame);
	size_t have = stream->end - stream->begin - sizeof(*frame), part;
	struct cr_rdma rdma;

	if (frame->length < sizeof(rdma)) {
		cr_fatal(NULL, "a frame is too short", -EPROTO);
		return false;
	}
	if (have < sizeof(rdma))
		return false;
	memcpy(&rdma, at, sizeof(rdma));
	have -= sizeof(rdma);
	stream->direct = (unsigned char *)(uintptr_t)rdma.address;
	stream->direct_left = frame->length - sizeof(rdma);
	stream->reply = frame->type == CR_FRAME_REPLY ? rdma.id : 0;

	part = have < stream->direct_left ? have : stream->direct_left;
	memcpy(stream->direct, at + sizeof(rdma), part);
	stream->direct += part;
	stream->direct_left -= part;
	stream->begin += sizeof(*frame) + sizeof(rdma) + part;
	return true;
}

/* A sealed frame is complete here: it is not trusted before. */
static void put_sealed(cr_endpoint *ep, const struct cr_frame *frame, const unsigned char *payload)
{
	struct cr_rdma rdma;

	if (frame->length < sizeof(rdma)) {
		cr_fatal(ep, "a frame is too short", -EPROTO);
		return;
	}
	memcpy(&rdma, payload, sizeof(rdma));
	memcpy((void *)(uintptr_t)rdma.address, payload + sizeof(rdma),
	       frame->length - sizeof(rdma));
	if (frame->type == CR_FRAME_REPLY)
		cr_module_get_done(ep, rdma.id);
}

static inline bool moves_data(const struct cr_frame *frame)
{
	return frame->type == CR_FRAME_PUT || frame->type == CR_FRAME_REPLY;
}

size_t cr_stream_missing(const struct cr_stream *stream)
{
	size_t at = stream->begin;
	struct cr_frame frame;

	if (stream->direct_left)
		return stream->direct_left;
	while (stream->end - at >= sizeof(frame)) {
		memcpy(&frame, stream->data + at, sizeof(frame));
		if (stream->end - at < sizeof(frame) + frame.length)
			return sizeof(frame) + frame.length - (stream->end - at);
		at += sizeof(frame) + frame.length;
	}
	return 0;
}

/*
 * ob1 of Open MPI 5.0 writes two bytes behind a message that only tells the number of a communicator
 * (mca_pml_ob1_recv_frag_callback_cid): where the next frame begins.
 */
static void hand_up(cr_endpoint *ep, const struct cr_frame *frame, unsigned char *payload)
{
	unsigned char *next = ep->stream.data + ep->stream.begin, keep[BEHIND];
	size_t length = ep->stream.end - ep->stream.begin;

	length = length < BEHIND ? length : BEHIND;
	memcpy(keep, next, length);
	cr_endpoint_receive(ep, frame, payload);
	memcpy(next, keep, length);
}

int cr_stream_deliver(cr_endpoint *ep)
{
	struct cr_stream *stream = &ep->stream;
	struct cr_frame frame;
	unsigned char *payload;
	int count = 0;

	if (OPAL_UNLIKELY(ep->seals.broken)) {
		cr_fatal(ep, "a message was changed on the way", -EBADMSG);
		return 0;
	}
	while (!stream->direct_left) {
		if (stream->reply) {
			uint64_t id = stream->reply;

			stream->reply = 0;
			cr_module_get_done(ep, id);
			count++;
		}
		if (stream->end - stream->begin < sizeof(frame))
			break;
		memcpy(&frame, stream->data + stream->begin, sizeof(frame));
		if (moves_data(&frame) && frame.form == CR_FORM_PLAIN) {
			if (!begin_direct(stream, &frame))
				break;
			count++;
			continue;
		}
		if (stream->end - stream->begin - sizeof(frame) < frame.length)
			break;
		payload = stream->data + stream->begin + sizeof(frame);
		stream->begin += sizeof(frame) + frame.length;
		frame.length -= frame.form == CR_FORM_SEALED ? SEAL_TAG : 0;
		if (OPAL_UNLIKELY(moves_data(&frame)))
			put_sealed(ep, &frame, payload);
		else
			hand_up(ep, &frame, payload);
		count++;
	}
	return count;
}
