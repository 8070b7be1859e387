/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Restart: from a loaded context file to running processes.  The order of
 * steps is in restart.c; skeleton.c creates the processes, process.c turns one
 * of them into the saved one, memory.c fills their memory, inherited.h that which they have
 * in common.
 */
#ifndef KCR_RESTART_RESTART_H
#define KCR_RESTART_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/chain.h"
#include "image/compression.h"
#include "image/context.h"

struct elsewhere;
struct redirect;
struct lazy;

/* CLOCK_MONOTONIC and CLOCK_BOOTTIME of the processes. */
enum restart_clocks {
	RESTART_CLOCKS_AUTO,	/* go on at their old values where that is possible */
	RESTART_CLOCKS_KEPT,	/* do so, or it fails */
	RESTART_CLOCKS_NEW,	/* are the caller's */
};

struct restart_options {
	bool restore_pid;	/* old PIDs and thread IDs */
	bool restore_pgid;	/* also groups whose leader is not in the file */
	bool restore_sid;	/* also sessions whose leader is not in the file */
	bool any_port;		/* replace TCP and UDP ports in use by free ones */
	bool any_cpu;		/* threads bound like the first one take the caller's affinity */
	bool leaves;		/* the caller ends before the programs do */
	bool trust;		/* --trust: no matter who may have written the file */
	bool strict_files;	/* refuse if an ordinary open file has changed */
	enum restart_clocks clocks;
	bool lazy;		/* large memory is loaded while the programs run … */
	struct elsewhere *elsewhere;	/* … of a partial image, from there, which is
					 * freed when it is; NULL: it is none */
	bool check_only;	/* find out whether this is possible here, and make nothing */
	struct redirect *redirect;	/* nr_redirects of them: resource/redirect.h */
	size_t nr_redirects;
	const struct chain *chain;	/* the older files of an increment; NULL: it is none */
	int signal;		/* sent to every process before it runs; 0: none */
	const char *source;	/* the context file, for callbacks: absolute, or NULL */
	pid_t requester;	/* likewise, who has asked for it; 0: the caller */
	const char *(*relocate)(const char *path);	/* or NULL */
	/*
	 * Called when it is known whose word the image is, before anything else of this machine
	 * is looked at: enters a container.  0 or -errno with a message; or a positive number,
	 * which restart_run() returns: another process goes on with the restart.  Or NULL.
	 */
	int (*join)(void *arg);
	bool own_pids;		/* join enters no container, but a PID namespace with all IDs free */
	void *join_arg;
	/*
	 * Called just before the processes run; or NULL.  `foreground`: their group
	 * that was in the foreground of the leader's terminal; 0: none.  0, or -errno with
	 * a message: they will not run.
	 */
	int (*commit)(pid_t leader, pid_t foreground);
	/* Called by any thread when all memory of a lazy restart is loaded; or NULL. */
	void (*loaded)(void);
	void (*progress)(void *arg, uint64_t bytes_done, uint64_t bytes_total);
	void *progress_arg;
};

/* What came out of one file of a chain. */
struct restart_image {
	uint64_t id;
	uint64_t nr_pages;
	uint64_t bytes;		/* read of the sections with these pages, as stored */
};

struct restart_result {
	pid_t leader;		/* the checkpoint's target, or the first root of its tree */
	size_t nr_processes;
	size_t nr_threads;
	uint64_t nr_mappings;
	uint64_t nr_files;
	uint64_t content_bytes;	/* of these */
	uint64_t nr_pages;
	uint64_t nr_shared;	/* pages more, which are another process's as well */
	uint64_t nr_duplicates;	/* pages more, which are equal to others */
	uint64_t bytes;		/* of the context file; of the older ones: */
	size_t nr_images;
	struct restart_image image[CONTEXT_MAX_ANCESTORS + 1];	/* the oldest first */
	struct compression_count compression[CONTEXT_COMPRESSIONS];	/* of the pages, by kind */
	struct lazy *lazy;	/* to be given to restart_wait(), or NULL: all is loaded */
	uint64_t nr_deferred;	/* pages that will be loaded while the programs run */
	uint64_t load_ns;	/* description; set by the caller */
	uint64_t open_ns;	/* files and their contents, memory that processes have in common */
	uint64_t skeleton_ns;	/* processes, up to the last ENTER */
	uint64_t fill_ns;	/* memory */
	uint64_t resume_ns;	/* until they run, options.commit included */
	uint64_t total_ns;	/* all that the caller has done; set by it */
};

/*
 * Rebuilds everything in `context` (just loaded from `reader`) and lets it
 * run.  Roots of the saved tree become children of the caller.  On an error
 * (-errno, message recorded with report_fail()) every new process has been
 * killed and reaped.  The caller must be single-threaded.  It may be killed
 * at any time: until options->commit has returned, the new processes die with it.
 */
int restart_run(struct context_reader *reader, const struct context *context,
		const struct restart_options *options, struct restart_result *result);

/*
 * Waits until all memory of a lazy restart is loaded; NULL: returns at once.  If the caller ends
 * before, the programs are killed.  0 or -errno with a message: they have been killed.
 */
int restart_wait(struct lazy *lazy);

#endif /* KCR_RESTART_RESTART_H */
