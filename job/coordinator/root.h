/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The coordinator in cr_mpirun: accepts requests from its unix socket, leads
 * the ranks through a checkpoint, completes the snapshot.  See wire.h for the
 * phases, job/request.h for the requests.
 */
#ifndef JOB_ROOT_H
#define JOB_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/snapshot.h"

#define ROOT_ANSWER_S	60

/* What no request says; all pointers are kept. */
struct root_settings {
	const char *interfaces;		/* network interfaces, see strangers_open() */
	/* Of checkpoints that a signal or the program asks for: */
	const char *local;		/* folder on every node for the ranks' files, or NULL */
	bool stand_still;		/* until all is written, instead of being copied */
	bool incremental;		/* with files of the last one of the same name */
	char **arguments;		/* of cr_checkpoint, for each rank; NULL-terminated, or NULL */
	/* Of those that a signal or the interval asks for: */
	const char *path;		/* absolute */
	unsigned int keep;		/* snapshots */
	/* The job is saved so often, or as the mean time to failure demands; 0: neither. */
	uint64_t interval_ns, mttf_ns;
	/* So long these, and those of the program, wait for restarted ranks' memory; 0: for ever. */
	unsigned int loading_s;
	unsigned int silence_s;		/* of a node, until it is lost; 0: WIRE_SILENCE_S */
	unsigned int answer_s;		/* a daemon has so long for an answer in a checkpoint; 0: ROOT_ANSWER_S */
	/*
	 * Unless NULL: gets a stream socket for messages of launch/ (wire.h).  Those of type
	 * WIRE_LAUNCH go on to the daemon that `id` is the number of, WIRE_ALL: to all, and
	 * come from them; WIRE_NODE: the daemon with that number has joined, data: struct in_addr
	 * and name of the node; WIRE_GONE, struct wire_failed and that name: it has gone;
	 * WIRE_HELLO: a rank is restored; WIRE_ALL: all are, or have been through MPI_Init;
	 * WIRE_SAY: a line for the user, to be printed; WIRE_UNABLE: the ranks have met, and
	 * cannot be saved, perhaps as there is no daemon for some;
	 * WIRE_SYNCED: the job has been saved,
	 * data: the snapshot's path, id: the signal that the ranks get then, 0: none.
	 */
	int *launch;
};

/*
 * Starts the thread.  `job` has what is the same in every manifest of this job (cwd,
 * options, program, environment, versions; interval: of the snapshot it was
 * restarted from, else 0), and is kept.
 * `address`, of `room` bytes, gets the value of WIRE_ROOT_VARIABLE, `secret`, of
 * WIRE_SECRET + 1 bytes, the job's secret.
 * 0 or -errno.
 */
int root_start(struct snapshot *job, const struct root_settings *settings,
	       char *address, size_t room, char *secret);

/* Before root_start(): signal `number` to this process saves the job.  0 or -errno. */
int trigger_start(int number);

#endif /* JOB_ROOT_H */
