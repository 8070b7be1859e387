/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rest of the plugin (and a test) may ask of btl/cr in its own rank.
 * Needs neither Open MPI's headers nor a link: mca_btl_cr_control_find() looks
 * the table up in the loaded component.
 *
 * One thread of the rank, which never calls MPI in between, goes through
 *
 *	gate_close  no other thread is inside btl/cr, none can enter
 *	bookmarks   how much was sent to and received from each peer; every rank
 *	            learns how much its peers have sent to it
 *	drain       for each of those peers: what was sent has been received
 *	---- a barrier of the whole job ----
 *	suspend     what must not be in an image is gone; then the dump
 *	---- a barrier of each node ----
 *	resume      in a process that goes on; or, in a restored one,
 *	restart     all channels are new: address_get, an exchange of addresses,
 *	            address_set for the peers in the bookmarks, at least, reconnect
 *	gate_open   traffic flows; channels come up again when they are used
 *
 * After a restart it asks for the addresses of ranks that were not set
 * (address_source), from any thread.
 *
 * None of this calls into Open MPI's message layer: it makes no difference
 * where in MPI the application's threads are meanwhile.  A cancelled checkpoint
 * goes from any step to resume (if it suspended) and gate_open.
 *
 * All functions return 0 or a count, or -errno; times are in milliseconds, and
 * none waits longer than its time-out.  -ESHUTDOWN: btl/cr is not in use (not yet
 * initialised, finalised, or not selected).  -EPERM: the gate is not closed.
 */
#ifndef MCA_BTL_CR_CONTROL_H
#define MCA_BTL_CR_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi-plugin/component.h"

#define MCA_BTL_CR_CONTROL_VERSION 2
#define MCA_BTL_CR_ADDRESS_MAX 256	/* bytes */

struct mca_btl_cr_bookmark {
	uint32_t rank;		/* in MPI_COMM_WORLD */
	uint32_t reserved;
	uint64_t sent;		/* bytes, since MPI_Init */
	uint64_t received;
};

struct mca_btl_cr_control {
	uint32_t version;	/* MCA_BTL_CR_CONTROL_VERSION */
	uint32_t size;		/* of this structure: later versions append */

	/*
	 * Waits until no thread is inside btl/cr and keeps all out.  The gate must
	 * be opened by the same thread.  -ETIMEDOUT: a thread did not leave, the
	 * gate is open as before; -EALREADY: it is closed.
	 */
	int (*gate_close)(int timeout_ms);
	int (*gate_open)(void);

	/*
	 * Fills in one entry for each peer that anything was ever exchanged
	 * with, at most max, and returns how many there are (which may be more
	 * than max: call again with room for all).
	 */
	int (*bookmarks)(struct mca_btl_cr_bookmark *entries, int max);

	/*
	 * Receives what peer has sent, until received reaches sent (from the
	 * peer's bookmark for this rank).  -ETIMEDOUT: it did not arrive;
	 * -EPROTO: more was received than was sent, the job is broken;
	 * -ECONNRESET: the connection was lost with bytes still missing;
	 * -EBADMSG: a message was changed on the way, the next call of MPI ends the job.
	 * A peer that never sent anything need not be drained.
	 */
	int (*drain)(uint32_t peer, uint64_t sent, int timeout_ms);

	/*
	 * Releases everything that must not be in an image: mappings and content of
	 * shared memory.  Sockets stay; a restart ignores those in an image.
	 * All ranks must have drained before any of them calls it, and of the
	 * ranks of a node all or none must have called it before any resumes or
	 * opens its gate.  -EBUSY: something is not drained.
	 */
	int (*suspend)(void);

	/*
	 * Undoes suspend; addresses are as before, no exchange is needed.  Waits for a moment until
	 * the peers of this node that were sent to have done the same.
	 */
	int (*resume)(void);

	/*
	 * In a restored process, instead of resume: drops all channels and
	 * addresses, opens new ports and inbox on this node.  Then address_get.
	 */
	int (*restart)(void);

	/*
	 * This rank's address as opaque bytes, for address_set in all others.
	 * Returns the length in bytes; -ENOSPC if max is too small
	 * (MCA_BTL_CR_ADDRESS_MAX is enough).
	 */
	int (*address_get)(void *address, size_t max);

	/*
	 * Sets where rank is now.  Entries override the addresses of MPI_Init, which
	 * are void after a restart, as are those that were set before; they decide
	 * whether a peer is on the same node.  The own rank's is ignored.  In any
	 * thread, with the gate open as well.
	 */
	int (*address_set)(uint32_t rank, const void *address, size_t length);

	/*
	 * After all address_set: connects by TCP, together with the other ranks'
	 * threads, to the peers that anything was ever exchanged with.  Without it
	 * a message that is begun after a restart leaves with the sender's next
	 * call of MPI, since the connection does not exist yet.  Connections not up
	 * in time come up when they are used.
	 */
	int (*reconnect)(int timeout_ms);

	/*
	 * Who is asked for the address of a rank that was not set since the last
	 * restart: ask() is called by a thread of the program, inside, which then
	 * waits for address_set in another thread; gate_close lets it wait, so it
	 * is to be tried again and again for short times.  Not in versions of this
	 * table that are shorter.
	 */
	int (*address_source)(int (*ask)(uint32_t rank));

	/*
	 * Under Yama: lets this process be traced by process pid and its children, as well as by
	 * whoever btl/cr needs: there is only one such setting.  Not in shorter tables.
	 */
	int (*tracer)(int pid);
};

/* Does it ask, or must all addresses be set after a restart? */
static inline bool mca_btl_cr_control_asks(const struct mca_btl_cr_control *control)
{
	return control->size > offsetof(struct mca_btl_cr_control, address_source);
}

static inline bool mca_btl_cr_control_traces(const struct mca_btl_cr_control *control)
{
	return control->size > offsetof(struct mca_btl_cr_control, tracer);
}

#define MCA_BTL_CR_CONTROL_SYMBOL "mca_btl_cr_control"

/* The table of the loaded component; NULL: none is loaded, or another version. */
static inline const struct mca_btl_cr_control *mca_btl_cr_control_find(void)
{
	const struct mca_btl_cr_control *control = (const struct mca_btl_cr_control *)
		component_symbol("/mca_btl_cr.so", MCA_BTL_CR_CONTROL_SYMBOL);

	return control && control->version == MCA_BTL_CR_CONTROL_VERSION ? control : NULL;
}

#endif
