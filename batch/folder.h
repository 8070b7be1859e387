/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The folder of a job's checkpoints, which may be that of several jobs: all files of a job
 * begin with its name.
 *	NAME.N.context	checkpoint N of processes, or NAME.N.kcr of an MPI job
 *			once it is found to be damaged, with .damaged behind that
 *	NAME.json	the state of the job (state.h)
 *	NAME.log	a line per event (log.h)
 *	NAME.script	the job script, if cr_batch runs a copy of it (job_script.h)
 *	NAME.lock	held while a cr_batch works for the job
 * A checkpoint has its name once it is complete.  It is the caller's own folder, to which
 * nobody else may write, as its files become the caller's processes.
 */
#ifndef KCR_BATCH_FOLDER_H
#define KCR_BATCH_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define FOLDER_NAME_MAX	64	/* bytes of a job's name */
#define DAMAGED_SUFFIX	".damaged"

struct folder {
	char path[PATH_MAX];		/* absolute */
	char name[FOLDER_NAME_MAX + 1];	/* of the job */
	int fd;				/* of the folder; -1: not open */
	int lock;			/* -1: not held */
};

struct folder_checkpoint {
	uint32_t number;		/* 1, 2, … */
	bool mpi;			/* a snapshot of an MPI job, which is a folder */
	bool damaged;			/* set aside */
	time_t created;
};

/* Is it a name for a job: letters, digits, "_", "-" and ".", not one at the front? */
bool folder_name_valid(const char *name);

/*
 * Opens the folder; `own`: it is made if it does not exist, and must be the caller's.  0, or
 * -errno with a message: among others -EPERM, others may write to it.
 */
int folder_open(struct folder *f, const char *path, const char *name, bool own);
void folder_close(struct folder *f);

/*
 * Takes the lock of the job, for which it waits for patience_s at most.  0, or with a message
 * -EBUSY (another cr_batch has it), -ENOLCK (there are no locks in this file system) or other
 * -errno.
 */
int folder_lock(struct folder *f, unsigned int patience_s);
/* Does some process hold the lock of that job? */
bool folder_is_locked(const struct folder *f, const char *name);

/*
 * The complete checkpoints of the job, or those that were set aside as `damaged`, the newest
 * first, in a malloc()ed array.  Their count or -errno with a message.
 */
ssize_t folder_list(const struct folder *f, bool damaged, struct folder_checkpoint **out);

/* The absolute path of a checkpoint; returns `out`. */
char *folder_checkpoint_path(const struct folder *f, const struct folder_checkpoint *c,
			     char out[PATH_MAX]);

/* Gives a checkpoint a name that does not count.  0, or -errno with a message. */
int folder_set_aside(const struct folder *f, const struct folder_checkpoint *c);

/* Removes one.  0 or -errno, no message. */
int folder_drop(const struct folder *f, const struct folder_checkpoint *c);
/*
 * Removes all complete checkpoints but the newest `keep` and those that these need.  0, or
 * -errno with a message: if that is because one of these cannot be read, nothing is removed.
 */
int folder_prune(const struct folder *f, size_t keep);
/* Removes all, damaged and half-written ones as well.  0 or -errno, no message. */
int folder_clear(const struct folder *f);

/* Removes all files of the job, and the folder if it is empty then.  0, or -errno with a message. */
int folder_remove_job(const struct folder *f);

/* Replaces the file NAME.SUFFIX by `text`, or leaves it as it is.  0 or -errno, no message. */
int folder_write(const struct folder *f, const char *suffix, const char *text);

/* The name NAME.SUFFIX in the folder, to be opened with f->fd; returns `out`. */
char *folder_file(const char *name, const char *suffix, char out[NAME_MAX + 1]);

#endif /* KCR_BATCH_FOLDER_H */
