/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and the rings of packet sockets (PACKET_RX_RING, PACKET_TX_RING of packet(7)): which
 * of its frames the kernel uses next.  The rules for structures are in kcr.h, which includes
 * this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_PACKET_H
#define _UAPI_LINUX_KCR_PACKET_H

#include <linux/types.h>

#define KCR_PACKET_RING_TX	(1 << 0)	/* the ring for sending, instead of receiving */
#define KCR_PACKET_RING_SET	(1 << 1)	/* sets `next` and `sequence`, instead of telling them */

#define KCR_PACKET_RING_OPEN	(1 << 0)	/* the block `next` has been begun */

/*
 * A ring of a packet socket, of which the caller has the descriptor `fd`.  When the place of a ring
 * for receiving is told, all packets before it have been written, and so have those that were
 * counted in the open block when the call was made.  SET: the block is not open, but the kernel
 * opens it when it needs one and finds it free; for a socket to which nothing comes yet.
 * EBADF, ENOTSOCK; ENXIO: no packet socket, or it has no such ring; ERANGE: it has no such frame;
 * EBUSY: somebody is sending, or keeps the socket busy for 0.1 s; EOPNOTSUPP: as for AIO.
 */
struct kcr_packet_ring {
	__u32 size;
	__u32 flags;		/* KCR_PACKET_RING_TX, _SET */
	__s32 fd;
	__u32 next;		/* the frame, or of TPACKET_V3 for receiving the block */
	__u64 sequence;		/* of TPACKET_V3, for receiving: of the next block to be opened */
	__u32 state;		/* out: KCR_PACKET_RING_OPEN */
	__u32 pad;
};

#endif /* _UAPI_LINUX_KCR_PACKET_H */
