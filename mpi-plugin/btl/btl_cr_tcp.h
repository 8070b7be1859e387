/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the TCP channel share: btl_cr_tcp.c (connections),
 * btl_cr_guest.c (ports, connections not yet authenticated),
 * btl_cr_seal.c (authenticated frames).
 *
 * The listener sends a challenge.  The connecting rank answers with its rank and a
 * proof that it knows the key in the listener's address; the listener proves the same.
 * The key itself is never sent here, and the proofs are valid for one connection
 * only.  They also cover the setting of btl_cr_seal.
 */
#ifndef MCA_BTL_CR_TCP_H
#define MCA_BTL_CR_TCP_H

#include "btl_cr.h"

#define CR_TCP_MAGIC 0x3252434bu	/* "KCR2" */
#define CR_TCP_NUMBER 16		/* bytes */

struct cr_tcp_challenge {
	uint32_t magic;
	uint8_t number[CR_TCP_NUMBER];
};

struct cr_tcp_greeting {
	uint32_t magic;
	uint32_t rank;
	uint8_t number[CR_TCP_NUMBER];
	uint8_t proof[SEAL_KEY];
};

struct cr_tcp_answer {
	uint8_t proof[SEAL_KEY];
};

/* What the proofs of a connection cover; the listener is `to`. */
struct cr_tcp_meeting {
	struct cr_tcp_challenge challenge;
	uint8_t number[CR_TCP_NUMBER];	/* random, of the connecting side */
	uint32_t from, to;		/* ranks */
	uint32_t sealed;
};
_Static_assert(sizeof(struct cr_tcp_meeting) == 48, "no holes: it is proved as a whole");

/* A proof for this purpose, with the key of `to`'s address. */
void cr_tcp_prove(uint8_t out[SEAL_KEY], const uint8_t key[CR_ADDRESS_KEY], const char *purpose,
		  const struct cr_tcp_meeting *meeting);

/* The lowest two bits of the cookie distinguish endpoints (0), guests (1) and ports (2). */
int cr_tcp_watch(int operation, int fd, uint32_t what, uint64_t cookie);
void cr_tcp_no_delay(int fd);

/*
 * A guest has authenticated: agrees, and makes its connection that of the endpoint.
 * 0 or -errno: it is to be closed.
 */
int cr_tcp_welcome(const struct cr_tcp_meeting *meeting, int fd);

/* ---- guests ----------------------------------------------------------------- */

int cr_guest_open(void);	/* opens a port at each of our addresses */
void cr_guest_close(void);	/* ports and guests */
int cr_guest_event(uint64_t cookie);	/* of a guest or a port: what has come, 0 or more */
/* After handling epoll's events (all_heard: all of them): closes guests whose time is over. */
void cr_guest_settle(bool all_heard);
/* Leaves no connection that is not accepted: those that have no place are closed, and come again. */
void cr_guest_take_all(void);
bool cr_guest_drop_oldest(void);	/* false: there are none */

static inline bool cr_guest_is(uint64_t cookie)
{
	return cookie & 3;
}

/* ---- seals, with btl_cr_seal only --------------------------------------------- */

/* The connection is up: new keys from now on. */
void cr_seal_begin(cr_endpoint *ep, const uint8_t key[CR_ADDRESS_KEY],
		   const struct cr_tcp_meeting *meeting);
/* Before a frag is begun by TCP.  0, -ENOMEM. */
int cr_seal_frag(cr_endpoint *ep, struct cr_frag *frag);
/* Before a frag is begun on another channel. */
void cr_seal_strip(struct cr_frag *frag);
/*
 * `length` bytes were added to the stream: 0, or -EBADMSG: they were changed on the way, are taken off
 * again, and cr_stream_deliver() will end the job.
 */
int cr_seal_arrived(cr_endpoint *ep, size_t length, bool by_tcp);
/* All channels are closed: frames already begun continue on the next one. */
void cr_seal_forget(cr_endpoint *ep);

#endif
