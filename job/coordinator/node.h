/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon on every node (a thread of cr_node): a unix socket for the local ranks, one
 * connection to the root.  It forwards messages and saves its ranks when told to.
 */
#ifndef JOB_NODE_H
#define JOB_NODE_H

#include <stddef.h>

#define NODE_NAME_MAX	64

/*
 * Starts the thread, once.  `root` is WIRE_ROOT_VARIABLE's value, `secret`
 * the job's; `host` this node's name; `silence_s`: seconds of silence after which the root is
 * lost, at the latest; 0: about WIRE_SILENCE_S.  The name of the ranks' socket is left in `name`
 * (NODE_NAME_MAX bytes).  *launch, unless NULL, is a stream socket for the messages of launch/
 * (wire.h): those of type WIRE_LAUNCH go on to the root, and come from it.
 * It ends when the root has gone.  0 or -errno.
 */
int node_start(const char *root, const char *secret, const char *host, unsigned int silence_s,
	       char *name, int *launch);

/* Then waits until nothing writes any more, and what is of no use is removed. */
void node_finish(void);

#endif /* JOB_NODE_H */
