// SPDX-License-Identifier: GPL-2.0
/*
 * What is in the rings of a packet socket (PACKET_RX_RING, PACKET_TX_RING), and which frame the
 * kernel uses next.  Program and kernel each remember that; the module tells the kernel's number
 * and restores it.
 *
 * Packets come while the program stands still.  So the place is asked for before its frames are
 * looked at, and again behind that: what has been filled in between is known by it, and saved as
 * far as it is complete and without a gap; the rest is as if it had come after the checkpoint.
 */
#include "resource/packet_ring.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/file_table.h"
#include "resource/socket.h"

#define TRIES		10	/* a ring that was empty and is full looks as if nothing had come, once */
#define ALIGN(n)	(((n) + 7u) & ~7u)		/* as TPACKET_V3 does */
#define BLOCK_HEAD	ALIGN((uint32_t)sizeof(struct tpacket_block_desc))

struct ring {
	const struct packet_diag_ring *shape;
	uint32_t flags;			/* KCR_PACKET_RING_TX, or none */
	uint64_t offset;		/* of its memory in that of both */
};

struct saving {
	struct file_table *t;
	const struct file_probe *probe;
	Kcr__PacketSocket *s;
	int version;			/* TPACKET_V* */
	const char *memory;		/* mapped; of both rings */
	uint64_t saved;			/* bytes */
};

static uint64_t length_of(const struct packet_diag_ring *shape)
{
	return (uint64_t)shape->pdr_block_size * shape->pdr_block_nr;
}

static int ask(struct saving *g, const struct ring *ring, struct kcr_packet_ring *out)
{
	const char *name = ring->flags ? "PACKET_TX_RING" : "PACKET_RX_RING";
	int err = g->t->job < 0 ? -EOPNOTSUPP :
		  device_packet_ring(g->t->job, g->probe->fd, ring->flags, out);

	if (err == -EOPNOTSUPP)
		return file_unsupported(g->t, "a packet socket with a ring in memory (%s), of which this "
					"kernel does not tell enough: it needs CONFIG_DEBUG_INFO_BTF "
					"and CONFIG_PACKET=y", name);
	if (err == -EBUSY && file_table_is_dry(g->t))
		return 0;
	return err ? file_save_error(g->probe, err, "cannot query the place of its ring (%s)", name) : 0;
}

static int refuse_changed(struct saving *g)
{
	return file_unsupported(g->t, "a packet socket whose ring in memory the program has changed "
				"itself");
}

/* Saves a part of the memory; *copy: what is saved, to be changed. */
static int add_part(struct saving *g, uint64_t offset, uint64_t length, char **copy)
{
	Kcr__PacketSocket *s = g->s;
	Kcr__PacketPart **more, *part;
	int err;

	g->saved += length;
	if (g->saved > CONTEXT_RINGS_MAX)
		return file_unsupported(g->t, "a packet socket with more than %u MiB in its rings",
					CONTEXT_RINGS_MAX >> 20);
	more = realloc(s->part, (s->n_part + 1) * sizeof(*more));
	if (more)
		s->part = more;
	part = malloc(sizeof(*part));
	if (!more || !part) {
		free(part);
		return report_errno(-ENOMEM, "saving a socket");
	}
	kcr__packet_part__init(part);
	more[s->n_part++] = part;
	part->offset = offset;
	err = file_bytes(&part->data, g->memory + offset, length);
	*copy = (char *)part->data.data;
	return err;
}

/* ---- frames: TPACKET_V1, TPACKET_V2, and all for sending -------------------------------------- */

static uint64_t frame_offset(const struct ring *ring, uint32_t i)
{
	uint32_t per_block = ring->shape->pdr_block_size / ring->shape->pdr_frame_size;

	return ring->offset + (uint64_t)(i / per_block) * ring->shape->pdr_block_size +
	       (uint64_t)(i % per_block) * ring->shape->pdr_frame_size;
}

/* Where its status is. */
static uint64_t status_offset(const struct saving *g, const struct ring *ring, uint32_t i)
{
	return frame_offset(ring, i) +
	       (g->version == TPACKET_V3 ? offsetof(struct tpacket3_hdr, tp_status) : 0);
}

/* What the frame holds is not older than that. */
static uint32_t get_status(int version, const char *at)
{
	return version == TPACKET_V1 ?
	       (uint32_t)__atomic_load_n((const unsigned long *)at, __ATOMIC_ACQUIRE) :
	       __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

static void set_status(int version, char *at, uint32_t status)
{
	if (version == TPACKET_V1)
		*(unsigned long *)at = status;
	else
		*(uint32_t *)at = status;
}

/* Up to the end of its packet. */
static uint32_t frame_length(int version, const char *frame, uint32_t most)
{
	uint64_t length = version == TPACKET_V1 ?
		(uint64_t)((const struct tpacket_hdr *)frame)->tp_mac +
		((const struct tpacket_hdr *)frame)->tp_snaplen :
		(uint64_t)((const struct tpacket2_hdr *)frame)->tp_mac +
		((const struct tpacket2_hdr *)frame)->tp_snaplen;

	return length < TPACKET2_HDRLEN || length > most ? most : length;
}

static bool read_statuses(const struct saving *g, const struct ring *ring, uint32_t *status)
{
	bool changed = false;

	for (uint32_t i = 0; i < ring->shape->pdr_frame_nr; i++) {
		uint32_t now = get_status(g->version, g->memory + status_offset(g, ring, i));

		changed |= now != status[i];
		status[i] = now;
	}
	return changed;
}

/* Those that were filled meanwhile count up to the first one that was not, which is *next. */
static void drop_gaps(uint32_t *status, uint32_t count, uint32_t *next, uint32_t end)
{
	bool gap = false;

	for (uint32_t i = *next; i != end; i = i + 1 < count ? i + 1 : 0) {
		gap |= status[i] == TP_STATUS_KERNEL;
		if (gap)
			status[i] = TP_STATUS_KERNEL;
		else
			*next = i + 1 < count ? i + 1 : 0;
	}
}

/* Which frames are the program's, and which one is next. */
static int look_at_frames(struct saving *g, const struct ring *ring, uint32_t *status,
			  uint32_t *next)
{
	struct kcr_packet_ring before = { 0 }, after = { 0 };
	bool again = true;
	int err = 0;

	for (int i = 0; i < TRIES && again && !err; i++) {
		err = ask(g, ring, &before);
		read_statuses(g, ring, status);
		if (!err)
			err = ask(g, ring, &after);
		again = before.next == after.next && read_statuses(g, ring, status);
	}
	if (err)
		return err;
	if (again || before.next >= ring->shape->pdr_frame_nr ||
	    after.next >= ring->shape->pdr_frame_nr)
		return file_save_error(g->probe, -EAGAIN, "somebody else uses its ring");
	*next = before.next;
	drop_gaps(status, ring->shape->pdr_frame_nr, next, after.next);
	return 0;
}

/* Copies of whole packets, in the queue of the socket, are lost as others there are. */
static int save_frame(struct saving *g, const struct ring *ring, uint32_t i, uint32_t status)
{
	uint64_t offset = frame_offset(ring, i);
	char *copy;
	int err = add_part(g, offset, frame_length(g->version, g->memory + offset,
						   ring->shape->pdr_frame_size), &copy);

	if (!err)
		set_status(g->version, copy, status & ~TP_STATUS_COPY);
	return err;
}

static int save_frames(struct saving *g, const struct ring *ring, Kcr__PacketRing *out)
{
	uint32_t *status = calloc(ring->shape->pdr_frame_nr, sizeof(*status));
	int err = status ? look_at_frames(g, ring, status, &out->next) :
			   report_errno(-ENOMEM, "saving a socket");

	for (uint32_t i = 0; i < ring->shape->pdr_frame_nr && !err; i++)
		if (status[i] != TP_STATUS_KERNEL)
			err = save_frame(g, ring, i, status[i]);
	free(status);
	return err;
}

/* ---- blocks: TPACKET_V3 for receiving --------------------------------------------------------- */

static uint64_t block_offset(const struct ring *ring, uint32_t i)
{
	return ring->offset + (uint64_t)i * ring->shape->pdr_block_size;
}

static const struct tpacket_hdr_v1 *block_head(const struct saving *g, const struct ring *ring,
					       uint32_t i)
{
	return &((const struct tpacket_block_desc *)(g->memory + block_offset(ring, i)))->hdr.bh1;
}

static bool is_users(const struct saving *g, const struct ring *ring, uint32_t i)
{
	return __atomic_load_n(&block_head(g, ring, i)->block_status, __ATOMIC_ACQUIRE) &
	       TP_STATUS_USER;
}

/* One that the program has not given back. */
static int save_block(struct saving *g, const struct ring *ring, uint32_t i)
{
	uint32_t length = block_head(g, ring, i)->blk_len;
	char *copy;

	if (length < BLOCK_HEAD || length > ring->shape->pdr_block_size)
		length = ring->shape->pdr_block_size;
	return add_part(g, block_offset(ring, i), length, &copy);
}

/* The kernel leaves the program's part of a block as it is. */
static int save_private(struct saving *g, const struct ring *ring, uint32_t i)
{
	char *copy;

	return ring->shape->pdr_sizeof_priv ? add_part(g, block_offset(ring, i) + BLOCK_HEAD,
						       ring->shape->pdr_sizeof_priv, &copy) : 0;
}

/* The place of the last one of `count` packets; 0: they are not what the kernel has written. */
static uint32_t last_packet(const char *block, uint32_t size, uint32_t count)
{
	uint32_t at = ((const struct tpacket_block_desc *)block)->hdr.bh1.offset_to_first_pkt;

	while (at >= BLOCK_HEAD && at % 8 == 0 && at <= size - sizeof(struct tpacket3_hdr)) {
		uint32_t step = ((const struct tpacket3_hdr *)(block + at))->tp_next_offset;

		if (!--count)
			return at;
		if (!step || step > size - at)
			return 0;
		at += step;
	}
	return 0;
}

/* One that is open, with the packets that it had, as if its time were over: no packet is lost. */
static int close_block(struct saving *g, const struct ring *ring, uint32_t i, uint32_t count)
{
	const char *block = g->memory + block_offset(ring, i);
	uint32_t size = ring->shape->pdr_block_size, at = last_packet(block, size, count);
	struct tpacket_hdr_v1 *head;
	struct tpacket3_hdr *last;
	uint64_t length;
	char *copy;
	int err;

	if (!at)
		return refuse_changed(g);
	last = (struct tpacket3_hdr *)(block + at);
	length = at + (((uint64_t)last->tp_mac + last->tp_snaplen + 7) & ~7ull);
	if (length > size)
		return refuse_changed(g);
	err = add_part(g, block_offset(ring, i), length, &copy);
	if (err)
		return err;
	head = &((struct tpacket_block_desc *)copy)->hdr.bh1;
	last = (struct tpacket3_hdr *)(copy + at);
	last->tp_next_offset = 0;
	head->block_status = TP_STATUS_USER | TP_STATUS_BLK_TMO;
	head->num_pkts = count;
	head->blk_len = length;
	head->ts_last_pkt.ts_sec = last->tp_sec;
	head->ts_last_pkt.ts_nsec = last->tp_nsec;
	return 0;
}

/* What the kernel was doing when it was asked first. */
struct blocks {
	bool *is_users;			/* not yet given back by the program */
	uint32_t first;			/* the first block whose contents came later … */
	uint64_t nr_later;		/* … and how many of these there are */
	uint32_t open;			/* packets of the block before it, if that is open */
};

/* Which blocks are whose, and how many packets `open` had: between two looks at the place. */
static int look_at_blocks(struct saving *g, const struct ring *ring, struct blocks *blocks,
			  struct kcr_packet_ring *before, struct kcr_packet_ring *after)
{
	uint32_t count = ring->shape->pdr_block_nr;
	int err = ask(g, ring, before);

	if (err)
		return err;
	if (before->next >= count)
		return file_save_error(g->probe, -EPROTO, "its ring is too short");
	if (before->state & KCR_PACKET_RING_OPEN) {
		if (block_head(g, ring, before->next)->seq_num != before->sequence - 1)
			return refuse_changed(g);
		blocks->open = __atomic_load_n(&block_head(g, ring, before->next)->num_pkts,
					       __ATOMIC_ACQUIRE);
	}
	for (uint32_t i = 0; i < count; i++)
		blocks->is_users[i] = is_users(g, ring, i);
	err = ask(g, ring, after);
	blocks->nr_later = after->sequence - before->sequence;
	return err ?: blocks->nr_later > count ?
	       file_save_error(g->probe, -EAGAIN, "somebody else uses its ring") : 0;
}

/* What comes after a block that is open comes to the next one, unless nothing has come to it yet. */
static void choose_next(const struct kcr_packet_ring *before, uint32_t count,
			struct blocks *blocks, Kcr__PacketRing *out)
{
	bool is_open = before->state & KCR_PACKET_RING_OPEN;
	bool is_full = blocks->is_users[before->next];

	blocks->first = before->next;
	out->has_sequence = true;
	out->sequence = before->sequence;
	if (is_open && (is_full || blocks->open)) {
		blocks->first = before->next + 1 < count ? before->next + 1 : 0;
	} else if (is_open) {
		out->sequence--;
		blocks->nr_later++;
	}
	if (is_full)
		blocks->open = 0;
	out->next = blocks->first;
}

static int save_all_blocks(struct saving *g, const struct ring *ring, const struct blocks *blocks)
{
	uint32_t count = ring->shape->pdr_block_nr;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		uint32_t behind = (i < blocks->first ? count : 0) + i - blocks->first;

		if (behind == count - 1 && blocks->open)
			err = close_block(g, ring, i, blocks->open);
		else if (behind >= blocks->nr_later && blocks->is_users[i])
			err = save_block(g, ring, i);
		else
			err = save_private(g, ring, i);
	}
	return err;
}

static int save_blocks(struct saving *g, const struct ring *ring, Kcr__PacketRing *out)
{
	struct blocks blocks = { .is_users = calloc(ring->shape->pdr_block_nr, sizeof(bool)) };
	struct kcr_packet_ring before = { 0 }, after = { 0 };
	int err = blocks.is_users ? look_at_blocks(g, ring, &blocks, &before, &after) :
				    report_errno(-ENOMEM, "saving a socket");

	if (!err) {
		choose_next(&before, ring->shape->pdr_block_nr, &blocks, out);
		err = save_all_blocks(g, ring, &blocks);
	}
	free(blocks.is_users);
	return err;
}

/* ---- sending ------------------------------------------------------------------------------------ */

/* All of it, as a program may fill frames once and send them again and again. */
static int save_pages(struct saving *g, const struct ring *ring)
{
	uint64_t end = ring->offset + length_of(ring->shape), from = ring->offset, at;
	static const char zeros[CONTEXT_PAGE];
	char *copy;
	int err = 0;

	for (at = from; at < end && !err; at += CONTEXT_PAGE) {
		if (memcmp(g->memory + at, zeros, CONTEXT_PAGE))
			continue;
		if (from < at)
			err = add_part(g, from, at - from, &copy);
		from = at + CONTEXT_PAGE;
	}
	return err || from == end ? err : add_part(g, from, end - from, &copy);
}

/* Of what the kernel is sending nobody will tell the restored program that it has been sent. */
static void forget_sending(struct saving *g, const struct ring *ring)
{
	size_t p = 0;

	for (uint32_t i = 0; i < ring->shape->pdr_frame_nr; i++) {
		uint64_t offset = status_offset(g, ring, i);
		Kcr__PacketPart *part;
		char *at;

		while (p < g->s->n_part && g->s->part[p]->offset + g->s->part[p]->data.len <= offset)
			p++;
		if (p == g->s->n_part)
			return;
		part = g->s->part[p];
		at = (char *)part->data.data + (offset - part->offset);
		if (part->offset <= offset && get_status(g->version, at) & TP_STATUS_SENDING)
			set_status(g->version, at, TP_STATUS_AVAILABLE);
	}
}

static int save_sending(struct saving *g, const struct ring *ring, Kcr__PacketRing *out)
{
	struct kcr_packet_ring place = { 0 };
	int err = ask(g, ring, &place);

	out->next = place.next;
	if (!err)
		err = save_pages(g, ring);
	if (!err)
		forget_sending(g, ring);
	return err;
}

/* ---- both ----------------------------------------------------------------------------------------- */

static Kcr__PacketRing *new_ring(const struct packet_diag_ring *shape)
{
	Kcr__PacketRing *ring = malloc(sizeof(*ring));

	if (!ring) {
		report_errno(-ENOMEM, "saving a socket");
		return NULL;
	}
	kcr__packet_ring__init(ring);
	ring->block_size = shape->pdr_block_size;
	ring->block_nr = shape->pdr_block_nr;
	ring->frame_size = shape->pdr_frame_size;
	ring->frame_nr = shape->pdr_frame_nr;
	ring->has_retire_tov = ring->retire_tov = shape->pdr_retire_tmo;
	ring->has_sizeof_priv = ring->sizeof_priv = shape->pdr_sizeof_priv;
	ring->has_features = ring->features = shape->pdr_features;
	return ring;
}

static int save_one(struct saving *g, const struct ring *ring, Kcr__PacketRing **out)
{
	struct kcr_packet_ring place = { 0 };

	if (!ring->shape->pdr_block_nr)
		return 0;
	*out = new_ring(ring->shape);
	if (!*out)
		return -ENOMEM;
	if (file_table_is_dry(g->t))	/* not mapped: the program may be about to change its rings */
		return ask(g, ring, &place);
	if (ring->flags)
		return save_sending(g, ring, *out);
	return g->version == TPACKET_V3 ? save_blocks(g, ring, *out) : save_frames(g, ring, *out);
}

int packet_rings_save(struct file_table *t, const struct file_probe *probe,
		      const struct packet_state *state, Kcr__PacketSocket *s)
{
	uint64_t length = length_of(&state->rx) + length_of(&state->tx);
	struct ring rx = { .shape = &state->rx };
	struct ring tx = { .shape = &state->tx, .flags = KCR_PACKET_RING_TX,
			   .offset = length_of(&state->rx) };
	struct saving g = { .t = t, .probe = probe, .s = s };
	socklen_t size = sizeof(g.version);
	int err;

	if (!length)
		return 0;
	if (getsockopt(probe->fd, SOL_PACKET, PACKET_VERSION, &g.version, &size))
		return file_save_error(probe, -errno, "cannot query the version of its ring");
	g.memory = file_table_is_dry(t) ? NULL : mmap(NULL, length, PROT_READ, MAP_SHARED, probe->fd, 0);
	if (g.memory == MAP_FAILED)
		return file_save_error(probe, -errno, "its ring in memory cannot be mapped");
	err = save_one(&g, &rx, &s->rx_ring);
	if (!err)
		err = save_one(&g, &tx, &s->tx_ring);
	if (g.memory)
		munmap((void *)g.memory, length);
	return err;
}
