/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Restart: from a loaded context file to running processes.  The order of
 * steps is in restart.c; skeleton.c makes the processes, process.c turns one
 * of them into its saved self, memory.c gives them their memory.
 */
#ifndef KCR_RESTART_RESTART_H
#define KCR_RESTART_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/context.h"

struct restart_options {
	bool restore_pid;	/* old process and thread numbers */
	bool restore_pgid;	/* also groups whose leader is not in the file */
	bool restore_sid;	/* also sessions whose leader is not in the file */
	bool any_port;		/* an internet port that is in use is replaced by a free one */
	bool any_cpu;		/* the caller's processors take the place of the first thread's */
	bool trust;		/* --trust: whoever may have written the file */
	int signal;		/* sent to every process before it runs; 0: none */
	const char *source;	/* the context file, for callbacks: absolute, or NULL */
	const char *(*relocate)(const char *path);	/* or NULL */
	/*
	 * Called just before the processes are let go; or NULL.  `foreground`: the
	 * group of theirs that had the leader's terminal; 0: none of them.
	 */
	void (*commit)(pid_t leader, pid_t foreground);
	void (*progress)(void *arg, uint64_t bytes_done, uint64_t bytes_total);
	void *progress_arg;
};

struct restart_result {
	pid_t leader;		/* the process that the checkpoint named (or its oldest root) */
	size_t nr_processes;
	size_t nr_threads;
	uint64_t nr_pages;
	uint64_t open_ns;	/* files and their contents */
	uint64_t skeleton_ns;	/* processes, up to the last ENTER */
	uint64_t fill_ns;	/* memory */
};

/*
 * Rebuilds everything in `context` (just loaded from `reader`) and lets it
 * run.  Roots of the saved tree become children of the caller.  On an error
 * (-errno, message recorded with report_fail()) every process made has been
 * killed and reaped.  The caller must be single-threaded.  It may be killed
 * at any time: what it has made dies with it, until options->commit is called.
 */
int restart_run(struct context_reader *reader, const struct context *context,
		const struct restart_options *options, struct restart_result *result);

#endif /* KCR_RESTART_RESTART_H */
