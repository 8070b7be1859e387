/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The global snapshot of an MPI job: a folder NAME.kcr with manifest.json and
 * one context file per rank, rank.N.ctx, in there or on the disk of the rank's node
 * (local.h).  It is complete or not there: made as
 * NAME.kcr.partial, renamed once everything is on the disk.  Of those that were
 * there before, some are kept as NAME.kcr.~K~, K being their interval number.
 */
#ifndef JOB_SNAPSHOT_H
#define JOB_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/request.h"

#define SNAPSHOT_SUFFIX		".kcr"
#define SNAPSHOT_MANIFEST	"manifest.json"
#define SNAPSHOT_HOSTS		"hosts"	/* a node per line and rank, if their files are there */
#define SNAPSHOT_FORMAT		1

struct snapshot_rank {
	char *node;			/* where it ran */
	uint64_t bytes;			/* of its context file */
	uint64_t checksum;		/* XXH64 of the context file */
};

struct snapshot {
	uint32_t interval;		/* 1, 2, … in the life of the job */
	int64_t created;		/* seconds since 1970 */
	char *openmpi;			/* versions */
	char *kcr;
	char *cwd;			/* of mpirun */
	char **options;			/* mpirun's, without the program; NULL-terminated */
	char **program;			/* and its arguments; NULL-terminated */
	char **environment;		/* OMPI_MCA_*, PMIX_MCA_* of mpirun; NULL-terminated */
	uint32_t nr_ranks;
	struct snapshot_rank *rank;
	char *local;			/* their files' folder on every node; NULL: in here */
	struct job_answer times;	/* only the *_ms; how long the phases took */
};

/* "dir/rank.N.ctx" or "dir/local/rank.N.ctx", malloc()ed. */
char *snapshot_rank_path(const char *dir, uint32_t rank);

/* Appends SNAPSHOT_SUFFIX where it is missing, makes it absolute; malloc()ed or NULL. */
char *snapshot_name(const char *path);

/* Does `dir` look like a snapshot (or hold only older ones of this name)? */
bool snapshot_is(const char *dir);

/*
 * Reads the manifest of `dir`; if there is no such folder, that of the newest
 * complete one that was kept.  *found is then the folder's name (malloc()ed).
 * 0 or -errno with a message.
 */
int snapshot_load(const char *dir, struct snapshot **out, char **found);

/*
 * Are all files there, with the sizes, and if `sums` the checksums, of the manifest?
 * *elsewhere: so many are on the disks of other nodes, for all one can see.
 */
int snapshot_check(const char *dir, const struct snapshot *s, bool sums, uint32_t *elsewhere);

/* The XXH64 and the size of a file. */
int snapshot_sum(const char *path, uint64_t *bytes, uint64_t *sum);

/*
 * Makes the empty folder that the ranks' files go to, or, if `local` is not NULL,
 * only the link to that one; its name in *partial (malloc()ed).  *gone here and below
 * gets the nodes' folders (strings_add()) that nothing refers to any more.
 */
int snapshot_begin(const char *path, const char *local, char **partial, char ***gone);

/*
 * Writes the manifest into `partial`, has all on the disk, gives it its name,
 * keeps `keep` - 1 older ones.  A failure leaves what was there before.
 */
int snapshot_commit(const char *path, const char *partial, const struct snapshot *s,
		    unsigned int keep, char ***gone);

/* Removes a folder of a snapshot, complete or not; without memory, *gone is not all. */
void snapshot_remove(const char *dir, char ***gone);

void snapshot_free(struct snapshot *s);

/* Adds a copy of `text` to a NULL-terminated vector (which may be NULL): 0 or -ENOMEM. */
int strings_add(char ***vector, const char *text);
void strings_free(char **vector);

#endif /* JOB_SNAPSHOT_H */
