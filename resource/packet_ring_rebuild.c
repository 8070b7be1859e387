// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of a packet socket at a restart: made as they were, filled, and the kernel's place moved to
 * where it was.
 *
 * The kernel opens a block of TPACKET_V3 by itself, a while after it has found it free, and then
 * writes to its head.  So the block that is to be next is the program's until the memory is filled.
 */
#include "resource/packet_ring.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "device/device.h"
#include "resource/file.h"

#define STATUS	offsetof(struct tpacket_block_desc, hdr.bh1.block_status)

static int make(const Kcr__File *file, int fd, const Kcr__PacketRing *ring, int option)
{
	const struct tpacket_req3 request = {
		.tp_block_size = ring->block_size, .tp_block_nr = ring->block_nr,
		.tp_frame_size = ring->frame_size, .tp_frame_nr = ring->frame_nr,
		.tp_retire_blk_tov = ring->retire_tov, .tp_sizeof_priv = ring->sizeof_priv,
		.tp_feature_req_word = ring->features,
	};

	return setsockopt(fd, SOL_PACKET, option, &request, sizeof(request)) ?
	       rebuild_error(file, -errno, "its ring in memory (%s, %llu bytes)",
			     option == PACKET_TX_RING ? "PACKET_TX_RING" : "PACKET_RX_RING",
			     (unsigned long long)packet_ring_length(ring)) : 0;
}

static int move(const struct rebuild *r, const Kcr__File *file, int fd, const Kcr__PacketRing *ring,
		uint32_t flags)
{
	struct kcr_packet_ring place = { .next = ring->next, .sequence = ring->sequence };
	int err = device_packet_ring(r->job, fd, flags | KCR_PACKET_RING_SET, &place);

	if (err == -EOPNOTSUPP)
		return rebuild_error(file, err, "this kernel does not tell enough of its ring in memory "
				     "(it needs CONFIG_DEBUG_INFO_BTF and CONFIG_PACKET=y)");
	return err ? rebuild_error(file, err, "its ring in memory cannot be brought to where it was") : 0;
}

static bool covers(const Kcr__PacketPart *part, uint64_t offset)
{
	return part->offset <= offset && offset - part->offset < part->data.len;
}

static void fill(const Kcr__PacketSocket *s, char *memory)
{
	for (size_t i = 0; i < s->n_part; i++)
		if (s->part[i]->data.len)
			memcpy(memory + s->part[i]->offset, s->part[i]->data.data, s->part[i]->data.len);
}

/* Where the status is of the block of TPACKET_V3 that is next; NULL: it is for frames. */
static uint32_t *next_status(const Kcr__PacketRing *rx, char *memory)
{
	return rx && rx->has_sequence ?
	       (uint32_t *)(memory + (uint64_t)rx->next * rx->block_size + STATUS) : NULL;
}

static int restore(const struct rebuild *r, const Kcr__File *file, int fd, char *memory)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	uint32_t *status = next_status(s->rx_ring, memory);
	bool is_free = status;
	int err = 0;

	for (size_t i = 0; i < s->n_part && is_free; i++)
		is_free = !covers(s->part[i], (char *)status - memory);
	if (status)
		__atomic_store_n(status, TP_STATUS_USER, __ATOMIC_SEQ_CST);
	if (s->rx_ring)
		err = move(r, file, fd, s->rx_ring, 0);
	if (!err && s->tx_ring)
		err = move(r, file, fd, s->tx_ring, KCR_PACKET_RING_TX);
	if (!err)
		fill(s, memory);
	if (is_free)
		__atomic_store_n(status, TP_STATUS_KERNEL, __ATOMIC_SEQ_CST);
	return err;
}

int packet_rings_make(const struct rebuild *r, const Kcr__File *file, int fd)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	uint64_t length = packet_ring_length(s->rx_ring) + packet_ring_length(s->tx_ring);
	char *memory;
	int err = 0;

	if (s->rx_ring)
		err = make(file, fd, s->rx_ring, PACKET_RX_RING);
	if (!err && s->tx_ring)
		err = make(file, fd, s->tx_ring, PACKET_TX_RING);
	if (err || !length)
		return err;
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return rebuild_error(file, -errno, "its ring in memory cannot be mapped");
	err = restore(r, file, fd, memory);
	munmap(memory, length);
	return err;
}
