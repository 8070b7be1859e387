/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Emulated checkpoints for a native test of btl/cr: a thread per rank goes
 * through the control interface again and again while the program communicates.
 * Instead of a dump and a restart all channels are closed and built anew, in
 * processes that live on.  The ranks meet in a file that all of them map.
 */
#ifndef KCR_TESTS_MPI_DRIVER_H
#define KCR_TESTS_MPI_DRIVER_H

#include <stdint.h>

struct driver_result {
	unsigned int continued, restarted, moved, given_up;
	uint64_t drained;	/* bytes, all ranks */
	double worst_ms;	/* the longest from closing the gate to opening it */
	double total_ms;
};

/*
 * After MPI_Init: starts the thread if KCR_MPI_DRIVER names a file (which must
 * be new).  KCR_MPI_INTERVAL: milliseconds between two rounds (5).  KCR_MPI_KINDS:
 * letters of what rounds may do: c continue, r restart, m restart with other
 * neighbours on the node, g give up, a restart where a rank asks for its peers'
 * addresses (all of these), l restart where they are late.  Returns whether there is a driver.
 */
int driver_start(int rank, int size);

/* Of any kind, so far, of this rank. */
unsigned int driver_rounds(void);

/* Before MPI_Finalize, after a barrier: ends the thread. */
void driver_stop(struct driver_result *result);

#endif
