/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A step that takes something from a program for a moment, in a process of its own: that gives it back
 * whatever ends cr_checkpoint meanwhile.  It has the job, too, so that the program is stopped as long.
 */
#ifndef KCR_RESOURCE_APART_H
#define KCR_RESOURCE_APART_H

#include "resource/resource.h"

/* *data, empty before, is malloc'ed.  0 or -errno, without a message. */
typedef int (*apart_step)(void *arg, ProtobufCBinaryData *data);

/* What the step returns; its data, and what it has changed of the `size` bytes of *arg, come back. */
int apart_do(apart_step step, void *arg, size_t size, ProtobufCBinaryData *data);

/*
 * Likewise for a step of several that cr_checkpoint takes itself: a process waits to undo it if
 * cr_checkpoint is ended before apart_unguard().  Without a process (pid < 0) nothing is undone.
 */
struct apart_guard {
	pid_t pid;
	int fd;
};

struct apart_guard apart_guard(void (*undo)(void *arg), void *arg);
void apart_unguard(const struct apart_guard *guard);

#endif /* KCR_RESOURCE_APART_H */
