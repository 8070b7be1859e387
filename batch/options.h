/* SPDX-License-Identifier: GPL-2.0 */
/* The command line of cr_batch; see cr_batch(1). */
#ifndef KCR_BATCH_OPTIONS_H
#define KCR_BATCH_OPTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "batch/scheduler.h"
#include "image/compression.h"

#define EXIT_SAVED		85	/* by default: saved after a warning */
#define EXIT_FOLDER		73	/* the folder cannot be used */
#define EXIT_TEMPORARY		75	/* not now, or not here: try later */
#define EXIT_HOPELESS		78	/* cannot be restarted: to run it again does not help */
#define EXIT_USAGE		255

struct options {
	const char *dir;
	char name[65];			/* of the job */
	char **command;

	int64_t interval_s;		/* 0: none */
	int64_t mttf_s;			/* --interval=auto: the mean time to failure; 0 */
	int64_t exit_each_s;		/* 0: not */
	int64_t before_end_s;		/* -1: not */
	int64_t time_s;			/* the allocation's length; -1: the scheduler knows */
	sigset_t leave_on, save_on;	/* signals for a save */
	int64_t hold_s;			/* how long the former are held back from the program */

	unsigned int keep, max_restarts;
	bool incremental;
	unsigned int full_every;	/* checkpoints, with `incremental` */
	int exit_code;
	bool verify, snapshot, skip_unsupported, keep_pids, keep_at_end, once, script;
	bool pid_namespace;		/* restarted programs have one of their own */
	bool require;			/* run nothing where it cannot be saved */
	bool quiet, verbose;
	const struct scheduler *scheduler;	/* whose job this is, or NULL */
	const struct scheduler *requeue;	/* to be asked for another run, or NULL */

	struct compression compression;	/* of the checkpoints */
	uint64_t bandwidth;		/* bytes written per second, at most; 0: no limit */

	const char *prometheus;		/* file for the metrics, or NULL */

	const char *status;		/* --status: the folder to show, instead of all that */
	bool json;
	bool clean;			/* --clean, instead of all that */
};

/* Reads the command line.  -1 to go on, or the exit code. */
int options_parse(int argc, char **argv, struct options *o);

#endif /* KCR_BATCH_OPTIONS_H */
