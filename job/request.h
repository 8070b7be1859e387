/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to a running MPI job: a unix socket beside its mpirun, served by the
 * coordinator in there (job/coordinator/).  A connection carries one
 * request and one answer, each a line of JSON:
 *	{"request":"checkpoint","path":"/abs/name.kcr","signal":0,"timeout":0,
 *	 "keep":1,"local":"/scratch","arguments":["--compress=lz4"]}
 *	{"code":0,"path":…,"ranks":4,"bytes":…,"gate_ms":…,"drain_ms":…,
 *	 "dump_ms":…,"commit_ms":…,"stopped_ms":…}  or  {"code":16,"message":"…"}
 * If there is a signal, which mpirun may not survive, an answer with "committed":true
 * comes first, as soon as the checkpoint is complete.
 * The socket has an abstract name, so nothing is left behind; both ends look at
 * who the other one is.  Where somebody else has taken the name that mpirun's number
 * makes, mpirun takes one that cannot be foreseen, and who may look at its open files
 * finds it.
 */
#ifndef JOB_REQUEST_H
#define JOB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define JOB_LINE_MAX	65536		/* bytes of a request or an answer */
#define JOB_MAX_ARGUMENTS 16

struct job_request {
	char *path;			/* absolute, ends in ".kcr" */
	char *local;			/* folder on every node for its ranks' files, or NULL */
	int signal;			/* for every rank afterwards; 0: none */
	unsigned int timeout_s;		/* 0: no limit */
	unsigned int keep;		/* snapshots of this name, from 1 on */
	size_t nr_arguments;		/* for cr_checkpoint, which saves each rank */
	char *argument[JOB_MAX_ARGUMENTS];
};

struct job_answer {
	int code;			/* errno, 0: done */
	char *message;			/* of a failure, or NULL */
	char *path;
	uint64_t bytes;
	uint32_t ranks;
	double gate_ms, drain_ms, dump_ms, commit_ms;
	double stopped_ms;		/* from the first gate to the last rank running on */
	bool committed;			/* the signal is on its way: another answer follows */
};

/*
 * Makes the listening socket of this process (an mpirun).  A descriptor, or
 * -errno.  *holder: who has the usual name; its pid is 0 if nobody else has, -1 if
 * that cannot be found out.
 */
int job_listen(struct ucred *holder);

/*
 * Connects to the coordinator in process `pid`.  A descriptor, or -errno:
 * -ENOENT: it is no mpirun with a coordinator (ask the process itself).
 */
int job_connect(pid_t pid);

/* Is the other end of `fd` allowed to ask: root, or who runs this process? */
bool job_peer_allowed(int fd);

/* Both directions of both lines.  Text is malloc()ed; 0 or -errno (-EINVAL: malformed). */
char *job_request_format(const struct job_request *request);
int job_request_parse(const char *line, struct job_request *out);
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
