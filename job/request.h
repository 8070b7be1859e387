/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to a running MPI job: a unix socket of its mpirun, served by the
 * coordinator there (job/coordinator/).  A connection carries one
 * request and one answer, each a line of JSON:
 *	{"request":"checkpoint","path":"/abs/name.kcr","signal":0,"timeout":0,
 *	 "keep":1,"local":"/scratch","snapshot":true,"incremental":true,"parent":"/abs/old.kcr",
 *	 "arguments":["--compress=lz4","--incremental"]}
 *	{"code":0,"path":…,"ranks":4,"not_copied":0,"bytes":…,"gate_ms":…,"drain_ms":…,
 *	 "copy_ms":…,"dump_ms":…,"commit_ms":…,"stopped_ms":…,"figures":{"pages":…},
 *	 "warnings":["rank 3: …"]}
 *	or  {"code":16,"message":"…"}
 * If there is a signal, which mpirun may not survive, an answer with "committed":true
 * comes first, as soon as the checkpoint is complete.
 * The socket has an abstract name, so nothing is left behind; both ends check the
 * other's credentials.  If another user has taken the name made from mpirun's PID,
 * mpirun uses a random one, which those who may see its open files
 * can find.
 */
#ifndef JOB_REQUEST_H
#define JOB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "job/figures.h"

#define JOB_LINE_MAX	65536		/* bytes of a request or an answer */
#define JOB_MAX_ARGUMENTS 16
#define JOB_MAX_WARNINGS 20		/* in an answer: further ones are left out */

struct job_request {
	char *path;			/* absolute, ends in ".kcr" */
	char *local;			/* folder on every node for its ranks' files, or NULL */
	int signal;			/* for every rank afterwards; 0: none */
	unsigned int timeout_s;		/* 0: no limit */
	unsigned int keep;		/* snapshots of this name, at least 1 */
	bool snapshot;			/* the ranks run on while they are written, unless there is a signal */
	bool incremental;		/* what has not changed may be in files of an older snapshot: */
	char *parent;			/* … absolute, or NULL: the last one of this name */
	size_t nr_arguments;		/* for cr_checkpoint, which saves each rank */
	char *argument[JOB_MAX_ARGUMENTS];
};

struct job_answer {
	int code;			/* errno, 0: done */
	char *message;			/* of a failure, or NULL */
	char *warning[JOB_MAX_WARNINGS];	/* "rank 3: …"; NULL after the last one */
	char *path;
	uint64_t bytes;
	struct job_figures figures;
	uint32_t ranks;
	uint32_t not_copied;		/* ranks that stood still as no copy could be made */
	double gate_ms, drain_ms, dump_ms, commit_ms;
	double copy_ms;			/* of a request for copies: until all ranks had theirs */
	double stopped_ms;		/* from the first gate until the last rank runs on */
	bool committed;			/* the signal is on its way: another answer follows */
};

/*
 * Creates the listening socket of this process (an mpirun).  A descriptor, or
 * -errno.  *holder: the process that has the usual name; pid is 0 if no other
 * process has it, -1 if it cannot be determined.
 */
int job_listen(struct ucred *holder);

/*
 * Connects to the coordinator in process `pid` or in its parent: it may be the launcher.  A descriptor, or -errno:
 * -ENOENT: it is not an mpirun with a coordinator (checkpoint the process itself).
 */
int job_connect(pid_t pid);

/* Is the other end of `fd` allowed to ask: root, or the user of this process? */
bool job_peer_allowed(int fd);

/* Both directions of both lines.  Text is malloc()ed; 0 or -errno (-EINVAL: malformed). */
char *job_request_format(const struct job_request *request);
int job_request_parse(const char *line, struct job_request *out);
/* Adds an argument for cr_checkpoint: 0, -E2BIG or -ENOMEM. */
int job_request_add(struct job_request *request, const char *argument);
void job_request_free(struct job_request *request);
char *job_answer_format(const struct job_answer *answer);
int job_answer_parse(const char *line, struct job_answer *out);
void job_answer_free(struct job_answer *answer);

/*
 * Sends the request and waits for the last answer.  0 (see answer->code) or -errno
 * if there is none: -ECONNRESET: mpirun ended before the checkpoint was complete.
 */
int job_ask(int fd, const struct job_request *request, struct job_answer *answer);

#endif /* JOB_REQUEST_H */
