/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon on every node (a thread of cr_node; with Open MPI 4.1 of an orted, or of mpirun
 * for its own node): a unix socket for the local ranks, one connection to the root.  It
 * forwards messages and saves its ranks when told to.
 */
#ifndef JOB_NODE_H
#define JOB_NODE_H

#include <stddef.h>

#define NODE_NAME_MAX	64

/*
 * Starts the thread, once.  `root` is WIRE_ROOT_VARIABLE's value, `secret`
 * the job's; `host` this node's name.  The name of the ranks' socket is left in
 * `name` (NODE_NAME_MAX bytes).  *ended, unless NULL, is a descriptor that becomes
 * readable when the root has gone and the thread has ended.  0 or -errno.
 */
int node_start(const char *root, const char *secret, const char *host, char *name, int *ended);

/* Creates a detached thread with all signals blocked: 0 or -errno. */
int thread_start(void *(*function)(void *), void *argument);

#endif /* JOB_NODE_H */
