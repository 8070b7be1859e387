// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_PACKET_RING: which frame of a packet socket's ring the kernel uses next.  It tells
 * nobody, and begins a new ring with the first; where it keeps the number is asked of BTF, once.
 *
 * A ring is made and removed by who owns the socket (lock_sock()); its place is moved under the lock
 * of the queue of received packets, or with pg_vec_lock held by who sends.  All that is written is a
 * number within the ring, which the kernel could have got to by itself.
 */
#include <linux/errno.h>
#include <linux/if_packet.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <net/sock.h>

#include "btf.h"
#include "ioctl.h"
#include "job.h"

#define PATIENCE	(HZ / 10)

enum { SK, RX_RING, TX_RING, PG_VEC_LOCK, VERSION };

static struct kcr_btf_member in_socket[] = {
	[SK] = { "sk", "sock", sizeof(struct sock) },
	[RX_RING] = { "rx_ring", "packet_ring_buffer", KCR_BTF_ANY_SIZE },
	[TX_RING] = { "tx_ring", "packet_ring_buffer", KCR_BTF_ANY_SIZE },
	[PG_VEC_LOCK] = { "pg_vec_lock", "mutex", sizeof(struct mutex) },
	[VERSION] = { "tp_version", NULL, sizeof(u32) },
};

enum { PG_VEC, HEAD, FRAME_MAX, BLOCKS };

static struct kcr_btf_member in_ring[] = {
	[PG_VEC] = { "pg_vec", "pgv", sizeof(void *) },
	[HEAD] = { "head", NULL, sizeof(u32) },
	[FRAME_MAX] = { "frame_max", NULL, sizeof(u32) },
	[BLOCKS] = { "prb_bdqc", "tpacket_kbdq_core", KCR_BTF_ANY_SIZE },
};

enum { ACTIVE, NR_BLOCKS, SEQUENCE, FROZEN };

static struct kcr_btf_member in_blocks[] = {
	[ACTIVE] = { "kactive_blk_num", NULL, sizeof(u16) },
	[NR_BLOCKS] = { "knum_blocks", NULL, sizeof(u32) },
	[SEQUENCE] = { "knxt_seq_num", NULL, sizeof(u64) },
	[FROZEN] = { "reset_pending_on_curr_blk", NULL, sizeof(u8) },
};

static struct kcr_btf_wanted wanted[] = {
	{ "packet_sock", in_socket, ARRAY_SIZE(in_socket) },
	{ "packet_ring_buffer", in_ring, ARRAY_SIZE(in_ring) },
	{ "tpacket_kbdq_core", in_blocks, ARRAY_SIZE(in_blocks) },
};

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

static void *at(void *object, const struct kcr_btf_member *member)
{
	return object + member->offset;
}

/* The frame that is used next. */
static int access_frames(void *ring, struct kcr_packet_ring *request)
{
	u32 *head = at(ring, &in_ring[HEAD]);

	if (!(request->flags & KCR_PACKET_RING_SET)) {
		request->next = *head;
		return 0;
	}
	if (request->next > *(u32 *)at(ring, &in_ring[FRAME_MAX]))
		return -ERANGE;
	*head = request->next;
	return 0;
}

/*
 * The block that is open.  While none is, as all were full, the kernel waits for the next one,
 * and opens it (prb_open_block()) as soon as it is free.
 */
static int access_blocks(void *ring, struct kcr_packet_ring *request)
{
	void *blocks = at(ring, &in_ring[BLOCKS]);
	u16 *active = at(blocks, &in_blocks[ACTIVE]);
	u64 *sequence = at(blocks, &in_blocks[SEQUENCE]);
	u8 *frozen = at(blocks, &in_blocks[FROZEN]);

	if (!(request->flags & KCR_PACKET_RING_SET)) {
		request->next = *active;
		request->sequence = *sequence;
		request->state = *frozen ? 0 : KCR_PACKET_RING_OPEN;
		return 0;
	}
	if (request->next >= *(u32 *)at(blocks, &in_blocks[NR_BLOCKS]) || request->next > U16_MAX)
		return -ERANGE;
	*active = request->next;
	*sequence = request->sequence;
	*frozen = 1;
	return 0;
}

static bool exists(void *ring)
{
	return *(void **)at(ring, &in_ring[PG_VEC]);
}

static int access_rx(struct sock *sk, void *packet, struct kcr_packet_ring *request)
{
	void *ring = at(packet, &in_socket[RX_RING]);
	int err;

	if (!exists(ring))
		return -ENXIO;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	err = *(u32 *)at(packet, &in_socket[VERSION]) == TPACKET_V3 ?
	      access_blocks(ring, request) : access_frames(ring, request);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return err;
}

static int access_tx(void *packet, struct kcr_packet_ring *request)
{
	void *ring = at(packet, &in_socket[TX_RING]);
	struct mutex *lock = at(packet, &in_socket[PG_VEC_LOCK]);
	int err;

	if (!exists(ring))
		return -ENXIO;
	if (!mutex_trylock(lock))
		return -EBUSY;
	err = access_frames(ring, request);
	mutex_unlock(lock);
	return err;
}

static bool try_own(struct sock *sk)
{
	bool free;

	spin_lock_bh(&sk->sk_lock.slock);
	free = !sk->sk_lock.owned;
	if (free)
		sk->sk_lock.owned = 1;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (free)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return free;
}

/*
 * Owns the socket, until release_sock().  lock_sock() would wait for good and could not be killed:
 * a program may make the kernel wait for memory of its own while it owns a socket.
 */
static int own(struct sock *sk)
{
	unsigned long end = jiffies + PATIENCE;

	while (!try_own(sk)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EBUSY;
		schedule_timeout_killable(1);
	}
	return 0;
}

static int access(struct sock *sk, struct kcr_packet_ring *request)
{
	void *packet = (void *)sk - in_socket[SK].offset;
	int err = own(sk);

	if (err)
		return err;
	err = request->flags & KCR_PACKET_RING_TX ? access_tx(packet, request) :
						    access_rx(sk, packet, request);
	release_sock(sk);
	return err;
}

long kcr_ioc_packet_ring(struct kcr_job *job, void *request)
{
	struct kcr_packet_ring *ring = request;
	struct socket *socket;
	int err = kcr_btf_search(&places);

	if (err)
		return err;
	ring->state = 0;
	socket = sockfd_lookup(ring->fd, &err);
	if (!socket)
		return err;
	err = socket->sk && socket->sk->sk_family == PF_PACKET ? access(socket->sk, ring) : -ENXIO;
	sockfd_put(socket);
	/* The kernel writes packets to their places behind rcu_read_lock(). */
	if (!err && !(ring->flags & (KCR_PACKET_RING_SET | KCR_PACKET_RING_TX)))
		synchronize_rcu_expedited();
	return err;
}
