/* SPDX-License-Identifier: GPL-2.0 */
/* manifest.json of a global snapshot; see snapshot.h and kcr-mpi(7). */
#ifndef JOB_MANIFEST_H
#define JOB_MANIFEST_H

#include "job/snapshot.h"

/* Writes it and syncs it to the disk: 0 or -errno with a message. */
int manifest_write(const char *path, const struct snapshot *s);
/* 0; -ENOENT without a message if there is none, -errno with a message. */
int manifest_read(const char *path, struct snapshot **out);

#endif /* JOB_MANIFEST_H */
