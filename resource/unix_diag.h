/* SPDX-License-Identifier: GPL-2.0 */
/* What only the kernel's sock_diag knows about a Unix socket. */
#ifndef KCR_RESOURCE_UNIX_DIAG_H
#define KCR_RESOURCE_UNIX_DIAG_H

#include <stddef.h>
#include <stdint.h>

#include "resource/resource.h"

#define UNIX_PENDING_MAX	1024	/* more do not fit into an answer */

struct unix_state {
	uint8_t state;			/* TCP_ESTABLISHED, TCP_LISTEN, TCP_CLOSE */
	uint8_t shutdown;		/* 1: receiving, 2: sending */
	uint32_t peer;			/* inode, 0: none */
	uint32_t node;			/* inode of its name (lower half), 0: none */
	uint32_t backlog;		/* if it listens */
	uint32_t pending[UNIX_PENDING_MAX]; /* inodes of connections not accepted */
	size_t nr_pending;
	uint32_t nr_waiting;		/* connections not accepted, listed or not */
	uint32_t unread;		/* bytes that its peer has not read, if connected */
};

/* 0, or -errno without a message: not of this network namespace, or no unix_diag. */
int unix_diag(struct file_table *t, ino_t ino, struct unix_state *out);

#endif /* KCR_RESOURCE_UNIX_DIAG_H */
