/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checkpoint: from running processes to a complete context file.  The order
 * of steps is in checkpoint.c: scope.c finds the processes, precheck.c refuses
 * what cannot work, stop.c stops them, describe.c records their state, memory.c
 * saves their pages (of an increment: increment.c, changes.c, origins.c; those that
 * processes have in common, or that are equal: family.h, duplicates.h), figures.c counts
 * what is not saved, destination.c puts the file in place.  precopy.h makes several in a row.
 */
#ifndef KCR_CHECKPOINT_CHECKPOINT_H
#define KCR_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/compression.h"

/* Which processes; the values are those of CR_SCOPE_*. */
enum checkpoint_scope {
	CHECKPOINT_PROCESS = 0,
	CHECKPOINT_GROUP = 1,
	CHECKPOINT_SESSION = 2,
	CHECKPOINT_TREE = 3,
};

/* What happens to an existing file of the destination's name. */
enum checkpoint_replace {
	CHECKPOINT_ATOMIC,		/* replaced atomically once all is written */
	CHECKPOINT_BACKUP,		/* renamed */
	CHECKPOINT_CLOBBER,		/* removed before anything is written */
	CHECKPOINT_NOCLOBBER,		/* the checkpoint fails with EEXIST */
};

/* What to do with processes that are debugged or debug others. */
enum checkpoint_ptrace {
	CHECKPOINT_PTRACE_ERROR,
	CHECKPOINT_PTRACE_SKIP,		/* leave the process out */
	CHECKPOINT_PTRACE_ALLOW,	/* save it, without its debugger */
};

/* How an increment finds out which pages have changed. */
enum checkpoint_changes {
	CHECKPOINT_AUTO,		/* as DIRTY, silently */
	CHECKPOINT_DIRTY,		/* writes are tracked; where they are not, as HASH */
	CHECKPOINT_HASH,		/* all pages are compared with the parent's hashes */
};

#define CHECKPOINT_SAVE_EXE	(1 << 0)	/* pages of the executable */
#define CHECKPOINT_SAVE_PRIVATE	(1 << 1)	/* pages of all private file mappings */
#define CHECKPOINT_SAVE_SHARED	(1 << 2)	/* contents of shared mapped files */

struct checkpoint_result;
struct postponed;

struct checkpoint_options {
	enum checkpoint_scope scope;
	pid_t target;

	const char *path;		/* the destination; NULL: fd */
	int fd;
	enum checkpoint_replace replace;
	const char *backup;		/* name for BACKUP; NULL: PATH.~N~ */
	unsigned int keep;		/* so many of PATH, PATH.~N~ …; 0: no matter.  ATOMIC only */
	bool sync;			/* fsync before reporting success */

	int signal;			/* sent to every process at the end; 0: none */
	bool ends;			/* with a signal: after it the programs go on from the image, not from
					 * here: nothing of them runs on before it */
	unsigned int timeout_s;		/* 0: none; see stop.c */
	bool timeout_each;		/* for each stop, and then for the callbacks to end: writing counts
					 * for neither */
	bool snapshot;			/* let the processes run while memory is written */
	bool skip_unsupported;		/* such files are restored as closed */
	bool must_reopen;		/* refuse files that a restart could not open again */
	unsigned int save;		/* CHECKPOINT_SAVE_* */
	enum checkpoint_ptrace traced;
	enum checkpoint_ptrace tracer;
	struct compression compression;
	uint64_t bandwidth;		/* bytes written per second, at most; 0: no limit */
	bool dedup;			/* pages that processes have in common, or that are equal, are
					 * stored once; not with `incremental` */
	bool incremental;		/* save tables, and only what differs from a parent */
	enum checkpoint_changes changes;
	const char *parent;		/* its file; NULL: the present one at `path`, if any; to a
					 * descriptor: none, the image is full */
	bool parent_optional;		/* if that can be no parent the image is full, with a warning */
	const char *chain_path;		/* the parent's older files may also be there; or NULL */
	/*
	 * Or: the parent is the file of the destination's name in this folder.  Links of it and of its
	 * older files are made beside the new image, so that this needs nothing of the folder;
	 * where that is impossible, or the file can be no parent, the image is full, with a warning.
	 */
	const char *parent_folder;
	unsigned int full_every;	/* images of a chain; 0: no limit */
	unsigned int precopy;		/* for precopy.h: images before this one, at most; 0: none */
	bool elsewhere;			/* not to be restarted by itself on this machine */
	/* For precopy.h: each of these is complete, `number` from 1; or NULL. */
	void (*round)(void *arg, unsigned int number, const struct checkpoint_result *result);
	void *round_arg;

	/*
	 * With a signal that ends the processes, or a snapshot: large memory is left out, and is read
	 * from copies afterwards (postponed.h); or NULL.
	 */
	struct postponed *postponed;

	pid_t requester;		/* the requester that callbacks see; 0: the caller */
	pid_t prohibited;		/* EDEADLK if a callback adds this one; 0: none */
	/* Called when all checks have passed and no process is stopped yet; as below.  Or NULL. */
	int (*begun)(void);
	/*
	 * Called when the image is complete, but has not its name yet; or NULL.  The processes are
	 * still stopped if they are to get a signal.  -errno with a message: the checkpoint fails.
	 */
	int (*ready)(void *arg);
	void *ready_arg;
	/*
	 * Called when the processes run again and what is left to write is in their copies,
	 * or (copied false) everything is written; -errno, reported, gives up.  Or NULL.
	 */
	int (*released)(bool copied);

	/* For inside.h: CLONE_NEW* of a container that this process has entered; 0: none. */
	int namespaces;
	/* With a signal: called when the file has its name, before the signal is sent.  Or NULL. */
	void (*committed)(void *arg);
	void *committed_arg;
	/* The same, after it; not 0, reported: they run on without the signal. */
	int (*saved)(void *arg, const struct checkpoint_result *result);
	void *saved_arg;

	bool figures;			/* count what is left out: a second look at page tables */
	/* Called now and then with the bytes of memory done and expected (an estimate). */
	void (*progress)(void *arg, uint64_t bytes_done, uint64_t bytes_total);
	void *progress_arg;
};

/* Pages that were looked at and are in no context file: with options.figures. */
struct checkpoint_left_out {
	uint64_t nr_zero;		/* touched */
	uint64_t nr_untouched;		/* … or not: anonymous memory */
	uint64_t nr_mapped;		/* never written to: the mapped file has them */
};

struct checkpoint_file {
	uint64_t bytes;
	uint64_t id;			/* in its head */
};

struct checkpoint_result {
	size_t nr_processes;		/* zombies included */
	size_t nr_threads;
	uint64_t attempts;		/* all but check_ns, total_ns and these are of the last one */
	uint64_t nr_mappings;
	uint64_t nr_files;		/* open or mapped */
	uint64_t content_bytes;		/* of their contents */
	uint64_t nr_scanned;		/* pages of private mappings, all that were looked at */
	uint64_t nr_pages;
	uint64_t nr_shared;		/* pages more, which are stored as another process's */
	uint64_t nr_duplicates;		/* pages more, which are equal to others */
	uint64_t nr_unchanged;		/* pages more, which older files have */
	uint64_t nr_unwritten;		/* … of these, known without reading them */
	struct checkpoint_left_out left_out;
	struct compression_count compression[CONTEXT_COMPRESSIONS];	/* of pages, by kind */
	double target_rate;		/* bytes/s that the destination takes, if that was measured; 0 */
	uint64_t bytes;			/* of the context file */
	uint64_t id;			/* … in its head, chosen at random */
	size_t nr_older;		/* files that an increment needs, */
	struct checkpoint_file older[CONTEXT_MAX_ANCESTORS];	/* the oldest first */
	unsigned int nr_rounds;		/* of pre-copy: images before this one … */
	uint64_t rounds_bytes;		/* … and their bytes */
	uint64_t check_ns;		/* before anything happens to the processes */
	uint64_t notify_ns;		/* callbacks before the stop … */
	uint64_t finish_ns;		/* … and after it, while other threads still stand */
	uint64_t park_ns;		/* until the last thread was stopped */
	uint64_t describe_ns;
	uint64_t snapshot_ns;
	uint64_t write_ns;		/* description, contents and memory; of these … */
	uint64_t content_ns;		/* … contents, */
	uint64_t memory_ns;		/* memory, */
	uint64_t scan_ns;		/* and of this finding the pages */
	uint64_t commit_ns;		/* fsync and rename; of these … */
	uint64_t sync_ns;		/* … fsync */
	uint64_t stopped_ns;		/* how long the processes were stopped */
	uint64_t total_ns;
};

/* What a checkpoint would be like. */
struct checkpoint_estimate {
	size_t nr_processes;		/* zombies included */
	size_t nr_threads;
	uint64_t bytes;			/* about the size of the context file */
};

/*
 * Finds out whether a checkpoint with these options could be taken: `obstacle` is called
 * with the message for each reason why not; the same reason may be told twice.
 * Nothing is written and no callback of libcr runs.  With `stop` the processes are stopped
 * for a moment, as some reasons show only then; without it they run on.
 * 0 or -errno with a message: one more reason, after which nothing else could be found out.
 */
int checkpoint_examine(const struct checkpoint_options *options, bool stop,
		       void (*obstacle)(void *arg, const char *message), void *arg,
		       struct checkpoint_estimate *out);

/*
 * Takes a checkpoint.  0 or -errno with a message recorded by report_fail(): then
 * no process is left stopped and no file is left behind.
 */
int checkpoint_run(const struct checkpoint_options *options, struct checkpoint_result *result);

/*
 * Is it a cr_restart that has nothing running yet, or no longer?  What it is going to restart,
 * perhaps a job under another program's name, would not be in a context file of it.  0, or
 * -EBUSY, reported.
 */
int checkpoint_refuse_idle_restart(pid_t pid);

/*
 * For a signal handler that is about to end the program: removes the unfinished
 * file.  Async-signal-safe.
 */
void checkpoint_abandon(void);

#endif /* KCR_CHECKPOINT_CHECKPOINT_H */
