/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings in memory of packet sockets: packet_ring.c saves, packet_ring_rebuild.c restores.  The
 * ring for receiving comes first in the memory, that for sending behind it.
 */
#ifndef KCR_RESOURCE_PACKET_RING_H
#define KCR_RESOURCE_PACKET_RING_H

#include "resource/packet_diag.h"
#include "resource/resource.h"

/* Bytes of its memory; NULL: 0. */
static inline uint64_t packet_ring_length(const Kcr__PacketRing *ring)
{
	return ring ? (uint64_t)ring->block_size * ring->block_nr : 0;
}

/* For save(), as that: -EOPNOTSUPP: file_unsupported() has been told why. */
int packet_rings_save(struct file_table *t, const struct file_probe *probe,
		      const struct packet_state *state, Kcr__PacketSocket *s);
/* Of a new socket that has its options, but to which nothing comes yet. */
int packet_rings_make(const struct rebuild *r, const Kcr__File *file, int fd);

#endif /* KCR_RESOURCE_PACKET_RING_H */
