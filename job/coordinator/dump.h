/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Saving one rank with cr_checkpoint(1), as a child of the daemon.  Its outcome
 * is read from the JSON it prints.  If the rank is to be copied it waits twice: before it
 * stops the rank, and when that runs on, before it writes.  If the rank is to get a signal it
 * waits once: with the complete file, while the rank still stands still.
 */
#ifndef JOB_DUMP_H
#define JOB_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "job/coordinator/wire.h"
#include "job/figures.h"

enum dump_state {
	DUMP_CHECKS,
	DUMP_READY,		/* waits, before it stops the rank */
	DUMP_COPIES,
	DUMP_RELEASED,		/* waits, the rank runs on */
	DUMP_WRITES,		/* without copies: all the time */
	DUMP_SAVED,		/* waits, the rank stands still until it gets its signal */
	DUMP_ENDS,
};

struct dump {
	pid_t pid;		/* of cr_checkpoint */
	int fd;			/* its output; readable until its end.  -1: not running */
	char *path;		/* the rank's context file */
	char *text;		/* what it printed */
	size_t length;
	size_t heard;		/* bytes of it that were looked at */
	int hold;		/* a byte into it lets it go on; -1: it waits for nothing */
	enum dump_state state;
	bool copied;		/* false: the rank stood still until it was written */
	struct wire_synced *file;	/* the complete one, and the older ones that it needs */
	size_t nr_files;
	struct job_figures figures;
};

/*
 * Saves process `top` with all its descendants to `path`, by a copy if `copy`; with a `signal` these
 * get that when it goes on from DUMP_SAVED, before they run on.
 * `arguments`: further ones for cr_checkpoint, NULL-terminated.  0 or -errno.
 */
int dump_start(struct dump *d, pid_t top, const char *path, char *const *arguments, bool copy,
	       int signal);

/*
 * Reads its output: 0 there will be more, 1 it has ended.  Sets `state` and `copied`, and with
 * DUMP_SAVED `file` and `figures`.
 */
int dump_read(struct dump *d);

/* Does it run, and wait? */
bool dump_is_held(const struct dump *d);

/* Lets one that waits go on. */
void dump_go_on(struct dump *d);

#define DUMP_WARNINGS	2048	/* bytes: more are left out */

/*
 * After its end: 0 with `file`, which is the caller's then (NULL if it was taken before), `figures`, and
 * its warnings in *text, each with a newline (NULL: none); or -errno with a message in *text.  To be
 * freed.  Frees everything else, and collects the process.
 */
int dump_finish(struct dump *d, char **text);

/* The warnings so far of one that waits, likewise. */
char *dump_warnings(const struct dump *d);

/* Cancels it; it still ends as above. */
void dump_cancel(struct dump *d);

#endif /* JOB_DUMP_H */
