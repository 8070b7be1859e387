/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of terminals: terminal.c and terminal_queue.c. */
#ifndef KCR_RESOURCE_TERMINAL_H
#define KCR_RESOURCE_TERMINAL_H

#include <stddef.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include "resource/resource.h"

/* The number of the pseudo-terminal that this device is the slave of; -1: not a slave. */
static inline int terminal_pty_index(dev_t dev)
{
	if (major(dev) >= 136 && major(dev) <= 143)
		return (major(dev) - 136) * 256 + minor(dev);
	return -1;
}

/* What is stopped of a pseudo-terminal (Terminal.stopped in the image). */
enum terminal_stop {
	TERMINAL_STOPPED_BY_CHARACTER = 1,	/* what the slave's programs write, by Ctrl-S */
	TERMINAL_OUTPUT_STOPPED = 2,		/* the same, by tcflow(3) */
	TERMINAL_INPUT_STOPPED = 4,		/* what the master's write, by tcflow(3) */
};

/*
 * What is unread on one side of a pseudo-terminal of which we have both ends, and what of
 * it is stopped.  The programs must be stopped.  *data is malloc'ed.
 */
int terminal_queue_save(int master, int slave, bool of_master, ProtobufCBinaryData *data,
			uint32_t *stopped);
/* Restores it.  0 or -errno, without a message. */
int terminal_queue_fill(int master, int slave, bool of_master, const ProtobufCBinaryData *data);
/* Stops what was stopped, once both sides are filled.  0 or -errno, without a message. */
int terminal_queue_stop(int master, int slave, uint32_t stopped);

#endif /* KCR_RESOURCE_TERMINAL_H */
