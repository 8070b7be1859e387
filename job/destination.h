/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a snapshot of a job goes, from the first file to its name: the job's side of
 * checkpoint/destination.h.  It is a folder that gets its name at the commit; the
 * files of the ranks go there or to a folder of every node (local.h).
 *
 * Functions return 0 or -errno with a message.  *gone gets the folders of nodes
 * (strings_add()) that no snapshot refers to any more; it is incomplete if out of memory.
 */
#ifndef JOB_DESTINATION_H
#define JOB_DESTINATION_H

#include <stdbool.h>

#include "job/snapshot.h"

struct job_destination;

/*
 * Creates the folder of the snapshot `path` (snapshot_name()), without the name, unless another job
 * is about to save to it (turn.h); local:
 * the folder of each node below which the ranks' files are to be, or NULL.  With the
 * new snapshot at most `keep` of this name stay.
 */
int job_destination_open(struct job_destination **out, const char *path, const char *local,
			 unsigned int keep, char ***gone);

/* The folder for the ranks' files; *local: is it one of every node? */
const char *job_destination_folder(const struct job_destination *d, bool *local);

/*
 * Writes the manifest (*s, where only `local` is still to be set, and `interval` becomes higher
 * if it has to be), syncs all to the disk and gives the folder its name.  After a failure the previous snapshot has it.
 */
int job_destination_commit(struct job_destination *d, struct snapshot *s, char ***gone);

/* NULL is allowed: false. */
bool job_destination_committed(const struct job_destination *d);

/* Removes the folder of a snapshot, complete or not, if it is the caller's own. */
void job_destination_remove(const char *dir, char ***gone);

/* Removes what was not committed.  NULL is allowed. */
void job_destination_close(struct job_destination *d, char ***gone);

#endif /* JOB_DESTINATION_H */
