/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_mpirun (watch.h) and the keepers of the nodes (keeper.h) tell each other about ranks,
 * in messages of type WIRE_LAUNCH (job/coordinator/wire.h): their `rank` is the one that is
 * meant, WIRE_ALL: every one of the node.
 */
#ifndef LAUNCH_RANK_MESSAGE_H
#define LAUNCH_RANK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/coordinator/wire.h"

#define RANK_BYTES_MAX	16384u		/* of output or input, in one message */
#define RANK_WINDOW	131072u		/* of output of a node that is not written yet */
#define RANK_BEHIND	(1u << 20)	/* of input that a rank has not taken while others have */
#define RANK_LEAST	512u		/* of it for a message: the memory that it takes on its way */

enum rank_message_type {
	/* keeper → cr_mpirun */
	RANK_STARTED = 1,	/* value: it takes input; data: uint32_t: size of the job, 0: unknown */
	RANK_OUTPUT,		/* value: STDOUT_FILENO or STDERR_FILENO; data */
	/* value: as from waitpid(2); data: uint8_t: lacks_memory of kept.h; if 0, all output has been sent */
	RANK_ENDED,
	RANK_ASKED,		/* the launcher sends it signal `value`, 0: has killed the proxy */
	RANK_ORPHANED,		/* the process that has started the proxies has ended */
	/* either way */
	RANK_TAKEN,		/* `value` bytes: of the rank's input; of cr_mpirun: of the window */
	/* cr_mpirun → keeper */
	RANK_INPUT,		/* data; none: the end */
	RANK_SIGNAL,		/* value */
	RANK_ALLOWED,		/* what was asked for is to be done; value: the same */
	RANK_ALONE,		/* what proxies say does not count any more */
	/* answered by RANK_SYNCED, behind all that was said before and the output of ranks that have ended */
	RANK_SYNC,
	/* keeper → cr_mpirun */
	RANK_SYNCED,		/* value: 1 if all were killed: nothing runs any more */
};

struct rank_message {
	uint32_t type;		/* enum rank_message_type */
	int32_t value;
};

/* What so many bytes of output in one message take of RANK_WINDOW. */
static inline size_t rank_charge(size_t length)
{
	return length > RANK_LEAST ? length : RANK_LEAST;
}

/* Queues a message (wire.h); `length`: RANK_BYTES_MAX at most. */
void rank_message_queue(struct wire *w, enum rank_message_type type, uint32_t rank, uint32_t node,
			int32_t value, const void *data, size_t length);

/* Splits what came with `header`; false: it is no such message. */
bool rank_message_read(const struct wire_header *header, const uint8_t **data,
		       struct rank_message *m, size_t *length);

#endif /* LAUNCH_RANK_MESSAGE_H */
