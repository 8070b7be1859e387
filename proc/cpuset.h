/* SPDX-License-Identifier: GPL-2.0 */
/* Which processors a cpuset (a cgroup's, of version 1 or 2) leaves to those that are in it. */
#ifndef KCR_PROC_CPUSET_H
#define KCR_PROC_CPUSET_H

#include <stdint.h>
#include <sys/types.h>

#define CPUSET_BYTES	1024	/* 8,192 processors */

/* The processors that are online. */
const uint8_t *cpuset_online(void);

/*
 * Those of them that a process or thread may be bound to.  All that are online if its cpuset
 * cannot be read (in a container that does not show it, say).
 */
void cpuset_of(pid_t pid, uint8_t mask[CPUSET_BYTES]);

#endif /* KCR_PROC_CPUSET_H */
