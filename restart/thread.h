/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of every thread's script: what only the thread itself can set, then
 * KCR_IOC_ENTER with its saved registers.
 */
#ifndef KCR_RESTART_THREAD_H
#define KCR_RESTART_THREAD_H

#include <stdbool.h>

#include "resource/resource.h"

struct blob;

/* Arguments of KCR_IOC_ENTER besides the thread's own state. */
struct thread_exit {
	int job;
	int exe_fd;			/* -1: keep */
	bool close_job;			/* close the job's file descriptor in this process */
	bool unmap;			/* … and unmap the blob */
	bool leader;			/* passes what concerns the whole process: the leader … */
	bool leaderless;		/* … or, as that exits, another thread */
	bool stopped;
	uint32_t stop_signal;		/* for wait(2), 0: already reported */
	uint32_t nr_threads;
	int dumpable;			/* 0 or 1, -1: unchanged */
	const Kcr__Preamble *preamble;
};

/*
 * Can this machine load the thread's floating-point state?  Call before anything
 * is created.  -EOPNOTSUPP or -EINVAL, reported.
 */
int thread_check(const Kcr__Thread *t, const Kcr__Preamble *preamble);

/* Ends the script. */
int thread_script(const Kcr__Thread *t, const struct thread_exit *how, struct blob *blob,
		  struct script *s);

/* Likewise, for a leader that exits with this exit code (as in wait(2)). */
void thread_script_end(uint32_t exit_code, struct script *s);

/* Bytes of operations and data that a thread needs, at most. */
uint64_t thread_script_size(const Kcr__Thread *t);

#endif /* KCR_RESTART_THREAD_H */
