/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The global snapshot of an MPI job: a folder NAME.kcr with manifest.json and
 * one context file per rank, rank.N.ctx, in there or on the disk of the rank's node
 * (local.h).  It is complete or does not exist (destination.h).  Some of the previous
 * ones are kept as NAME.kcr.~K~, K being their interval number.
 *
 * A rank's file may be an increment.  The older files that it needs are beside it:
 * rank.N.ctx.1 is the full one, rank.N.ctx.2 the next, and so on.  They are hard links of
 * the files in the snapshot before (checkpoint/increment.h), so no snapshot needs another.
 */
#ifndef JOB_SNAPSHOT_H
#define JOB_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/request.h"

#define SNAPSHOT_SUFFIX		".kcr"
#define SNAPSHOT_MANIFEST	"manifest.json"
#define SNAPSHOT_HOSTS		"hosts"	/* each rank's node, one per line, if files are local */
#define SNAPSHOT_SUMS		1	/* format of release 0.1.0: checksums in the place of ids */
#define SNAPSHOT_WHOLE		2	/* ranks have one file each */
#define SNAPSHOT_FORMAT		3	/* some have older ones, too: what knows 2 only must refuse it */

struct snapshot_file {
	uint64_t bytes;
	uint64_t id;			/* in its head; SNAPSHOT_SUMS: XXH64 of the file */
};

struct snapshot_rank {
	char *node;			/* the node it ran on */
	struct snapshot_file file;	/* its context file … */
	struct snapshot_file *older;	/* … and those that this needs, the oldest first */
	uint32_t nr_older;
};

struct snapshot {
	char *text;			/* the manifest that it was read from; or NULL */
	uint32_t format;		/* as read; what is written depends on what there is */
	uint64_t id;			/* of the job (identity.h); 0: of a release that had none */
	uint32_t interval;		/* 1, 2, … for one job; more than those that had its name before */
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
/* The folder that these are in, malloc()ed; NULL: `dir` is no snapshot. */
char *snapshot_files_folder(const char *dir);
/* Of all that ranks' files and those they need take; files in several snapshots count in each. */
uint64_t snapshot_bytes(const struct snapshot *s, uint64_t *older);

/* Appends SNAPSHOT_SUFFIX if it is missing, makes it absolute; malloc()ed or NULL. */
char *snapshot_name(const char *path);

/* Does `dir` look like a snapshot (or hold only older ones of this name)? */
bool snapshot_is(const char *dir);

/*
 * Reads the manifest of `dir`; if there is no such folder, that of the newest
 * complete one that was kept.  *found is then the folder's name (malloc()ed).
 * 0 or -errno with a message.
 */
int snapshot_load(const char *dir, struct snapshot **out, char **found);

/* Likewise of `dir` alone; -ENOENT without a message. */
int snapshot_load_one(const char *dir, struct snapshot **out);

/*
 * The interval number of the newest (or oldest) snapshot of this user kept as path.~K~, of those
 * that are older than `before` (0: of all); 0: none.  *count: how many there are.
 */
unsigned long snapshot_find_kept(const char *path, bool newest, unsigned long before,
				 unsigned int *count);

/* Reads a rank's file: 0 if it is sound and the one that the manifest means, or -errno, reported. */
typedef int snapshot_verify(const char *path, const struct snapshot *s,
			    const struct snapshot_file *file);

/*
 * Do all files exist, with the sizes of the manifest, and pass `verify` (NULL: are not
 * read)?  *elsewhere: of how many ranks they seem to be on the disks of other nodes.
 */
int snapshot_check(const char *dir, const struct snapshot *s, snapshot_verify *verify,
		   uint32_t *elsewhere);
/* Have all ranks written their file there?  Those that it needs were found by who wrote it. */
int snapshot_check_written(const char *dir, const struct snapshot *s);

/* Reports that it is not what the manifest says: -EINVAL. */
int snapshot_damaged(const char *path);

void snapshot_free(struct snapshot *s);

/* Adds a copy of `text` to a NULL-terminated vector (which may be NULL): 0 or -ENOMEM. */
int strings_add(char ***vector, const char *text);
void strings_free(char **vector);

#endif /* JOB_SNAPSHOT_H */
