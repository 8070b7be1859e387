/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stage of a job that is copied while it runs: a coordinator (mpirun.h), the daemon of
 * a node, ranks played by the test, a client that requests checkpoints, and the
 * cr_checkpoint that the daemon starts, which is the test program, too: it waits for files in
 * the stage's folder to appear, and leaves others there.
 */
#ifndef TESTS_UNIT_COPIED_JOB_H
#define TESTS_UNIT_COPIED_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "job/request.h"
#include "mpirun.h"

#define RANKS	5		/* more than may be written at a time on a small machine */
#define ID	0xabcdef00u	/* of the first rank's file */
#define OLDER_ID 0xfedcba00u	/* of the one that it needs, if it continues one */

extern struct stage {
	char *folder;
	pid_t node;			/* the daemon */
	int rank_fd[RANKS];
	uint32_t id;			/* of the checkpoint, as the ranks were told */
	bool incremental;		/* what requests say */
	const char *limit;		/* likewise, or NULL */
	/* The request that has come: */
	int request_fd;
	pthread_t client;
	struct job_answer answer;
	int result;			/* of job_ask() */
} stage;

/* For cmocka. */
int stage_set_up(void **state);
int stage_clean_up(void **state);
/* What the program does if it was started as cr_checkpoint; its exit code. */
int stage_be_cr_checkpoint(int argc, char **argv);

/*
 * Files in the folder, NAME or (number >= 0) NAME.NUMBER.  Made by the test: "refused",
 * "late" (until "copy"), "uncopied", "full", each of a rank, and "write", which lets all be
 * written.  Made by cr_checkpoint, with its PID: "copying", "writing", "bandwidth=RATE".
 */
const char *staged_path(const char *name, int number);
bool staged(const char *name, int number);
void stage_mark(const char *name, int number);
void stage_wait_for(const char *name, int number);

/* What ranks are told next by their daemon, and answer. */
void rank_is_told(int rank, uint32_t type);
void ranks_are_told(uint32_t type, uint32_t answer);
void ranks_are_told_nothing(void);
/* A checkpoint begins, up to the dumps. */
void ranks_are_prepared(void);

/* A connection to the coordinator, and a request for a checkpoint by copies. */
int request_connect(struct job_request *request);
/* The client asks … */
void request_comes(void);
/* … and the checkpoint begins, up to the dumps. */
void request_begins(void);
/* The request ends with this; text: NULL, no matter. */
void request_ends(int code, const char *text);

/* Only the rank files of a complete snapshot have the name. */
bool snapshot_is_complete(void);
void snapshot_is_saved(void);
/* The one that snapshot_is_saved() has made is still there, and nothing else. */
void snapshot_stays(void);
/* A request may come too early, or too soon after one that failed: until it does not. */
void wait_for_ranks(void);

#endif /* TESTS_UNIT_COPIED_JOB_H */
