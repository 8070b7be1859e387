/* SPDX-License-Identifier: GPL-2.0 */
/* The older checkpoints that an increment cannot be restarted without. */
#ifndef KCR_BATCH_NEEDED_H
#define KCR_BATCH_NEEDED_H

#include <stdbool.h>
#include <sys/types.h>

#include "batch/folder.h"

/*
 * Sets needed[i] of those of the `count` checkpoints, the newest first, that are among the
 * newest `keep`, or that one of these needs.  0, or -errno with a message: one of these
 * cannot be read, or lacks a file.
 */
int needed_mark(const struct folder *f, const struct folder_checkpoint *all, ssize_t count,
		size_t keep, bool *needed);

#endif /* KCR_BATCH_NEEDED_H */
