/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The coordinator in mpirun: accepts requests from its unix socket, leads
 * the ranks through a checkpoint, completes the snapshot.  See wire.h for the
 * phases, job/request.h for the requests.
 */
#ifndef JOB_ROOT_H
#define JOB_ROOT_H

#include <stddef.h>

#include "job/snapshot.h"

/*
 * Starts the thread.  `job` has what is the same in every manifest of this job (cwd,
 * options, program, environment, versions; interval: of the snapshot it was
 * restarted from, else 0); `local` the folder on every node for the ranks' files of
 * checkpoints that a signal or the program asks for, or NULL; both pointers are kept.
 * `interfaces`: network interfaces, see strangers_open().
 * `address`, of `room` bytes, gets the value of WIRE_ROOT_VARIABLE, `secret`, of
 * WIRE_SECRET + 1 bytes, the job's secret.
 * 0 or -errno.
 */
int root_start(struct snapshot *job, const char *local, const char *interfaces,
	       char *address, size_t room, char *secret);

/*
 * Before root_start(): signal `number` to this process saves the job as `name`, of
 * which `snapshots` are kept.  0 or -errno.
 */
int trigger_start(int number, const char *name, unsigned int snapshots);

#endif /* JOB_ROOT_H */
