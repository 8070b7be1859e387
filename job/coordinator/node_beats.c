// SPDX-License-Identifier: GPL-2.0
/* Signs of life between the daemon of a node and the root. */
#include "job/coordinator/node_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "proc/clock.h"

#define BEATS		4		/* in the time after which a silent root is given up, … */
#define BEAT_MS		10000u		/* … but at least one in this */
#define RETRY_MS	250		/* until TCP sends again what was not acknowledged, and counts */

/*
 * The root is silent from the cut on, and knows it when its time is over; these ranks must have
 * ended before.  The first beat that is not acknowledged is sent a while after the cut, and its
 * time counts from when it is sent again (tcp_write_timeout(), net/ipv4/tcp_timer.c): both are
 * taken from the time that it has.
 */
static void limit_silence(struct node *node, unsigned int silence_s)
{
	unsigned int share_ms = silence_s * 1000 / BEATS;
	unsigned int beat_ms = share_ms < BEAT_MS ? share_ms : BEAT_MS;
	unsigned int unanswered_ms = silence_s * 1000 - beat_ms - RETRY_MS;

	node->beat_ns = beat_ms * 1000000ull;
	setsockopt(node->root.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms,
		   sizeof(unanswered_ms));
}

/* The root asks only those whether they are alive that have said so once: others could not answer. */
void beats_begin(struct node *node, unsigned int silence_s)
{
	if (silence_s)
		limit_silence(node, silence_s);
	wire_send(&node->root, WIRE_ALIVE, WIRE_ALL, 0, NULL, 0);
}

static bool beats(const struct node *node)
{
	return node->beat_ns && !node->beat_owed;
}

/*
 * Of a connection without data only probes tell whether the other end lives, a part of its time apart,
 * by which its death may be noticed too late; and where that time is short the loss of one is taken for
 * it.  Data that is lost is sent again, within a fraction of a second.  A root that is stopped gets no
 * more than one: data that nobody reads are given up in the end.
 */
void beats_serve(struct node *node)
{
	if (!beats(node) || ms_until(node->next_beat_ns))
		return;
	wire_send(&node->root, WIRE_BEAT, WIRE_ALL, WIRE_ALL, NULL, 0);
	node->beat_owed = true;
	node->next_beat_ns = now_ns() + node->beat_ns;
}

int beats_patience(const struct node *node)
{
	return beats(node) ? ms_until(node->next_beat_ns) : -1;
}

void beats_answer(struct node *node, const struct wire_header *h)
{
	wire_send(&node->root, WIRE_ALIVE, WIRE_ALL, h->id, NULL, 0);
}
