/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Clients of /dev/kcr: programs that are notified of checkpoints before they are
 * stopped, and of restarts.  A client is an open file of its own, created by
 * CLIENT on any open /dev/kcr; it belongs to the process that created it.  libcr
 * uses these calls, and is in the memory of saved programs: so they are
 * supported for ever.  The requester's side and the rules for structures are
 * in kcr.h, which includes this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_CLIENT_H
#define _UAPI_LINUX_KCR_CLIENT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KCR_PATH_MAX		4096	/* of any path below, with its NUL */

/* The process is being restarted by this job: its state is OUTCOME, RESTARTED. */
#define KCR_CLIENT_RESTARTED	(1 << 0)

/*
 * Makes the calling process a client and returns a new close-on-exec
 * descriptor for the calls below; any open /dev/kcr will do.  It is a client until
 * the process closes its last descriptor, calls exec or ends; a forked
 * child that inherits the descriptor is not a client.
 * path: RESTARTED: of the context file, NUL-terminated; "": no path.
 * EEXIST: it is a client; EINVAL: RESTARTED, and the job is not a restart.
 */
struct kcr_client_new {
	__u32 size;
	__u32 flags;		/* KCR_CLIENT_* */
	__u64 path;
};

/* What a client is told about a checkpoint: PIDs as the requester gave them. */
struct kcr_notice {
	__s32 requester;	/* NOTIFY: 0: the process that owns the job */
	__s32 target;
	__u32 scope;		/* CR_SCOPE_* of libcr.h */
	__u32 signal;		/* sent afterwards, 0: none */
};

/*
 * On a client's descriptor: sleeps until a job requests a checkpoint.  Returns
 * the same request again until ANSWER.  path: a buffer of KCR_PATH_MAX bytes for
 * the destination.
 * EPERM: of another process; ESHUTDOWN: the descriptor was closed meanwhile.
 */
struct kcr_client_wait {
	__u32 size;
	__u32 flags;		/* 0 */
	struct kcr_notice notice;	/* out */
	__u64 path;
};

#define KCR_ANSWER_READY	0
#define KCR_ANSWER_TEMPORARY	1	/* no checkpoint now */
#define KCR_ANSWER_PERMANENT	2	/* … and the processes are to be killed */
#define KCR_ANSWER_OMIT		3	/* without this process */

#define KCR_OUTCOME_CONTINUED	0
#define KCR_OUTCOME_RESTARTED	1	/* result: the process that restarts */
#define KCR_OUTCOME_CANCELLED	2	/* result: an error number, above 0 */
#define KCR_OUTCOME_OMITTED	3

/*
 * While callbacks run, after RELEASE (HOLD) or RESUME (HOLD), the other
 * threads of the process are held; with these flags, they are not.  For
 * listed threads it is the other way round.
 */
#define KCR_ANSWER_FREE_CONTINUE	(1 << 0)
#define KCR_ANSWER_FREE_RESTART		(1 << 1)

#define KCR_ANSWER_THREADS	4096	/* that may be listed */

struct kcr_answer_thread {
	__s32 tid;
	__u32 flags;		/* of the two above: in which it is an exception */
};

/*
 * Answers the request that WAIT returned and sleeps until it is over.  A
 * restarted process is in this call.  path: a buffer of KCR_PATH_MAX bytes
 * for the context file, if RESTARTED.
 * threads: exceptions; the caller itself is never held.
 * EINVAL: there is nothing to answer; EPERM, ESHUTDOWN: as WAIT.
 */
struct kcr_client_answer {
	__u32 size;
	__u32 flags;		/* KCR_ANSWER_FREE_* */
	__u32 answer;		/* KCR_ANSWER_* */
	__u32 code;		/* an error number for the requester, 0: none */
	__u32 outcome;		/* out: KCR_OUTCOME_* */
	__s32 result;		/* out */
	__u64 path;
	__u64 threads;		/* struct kcr_answer_thread[nr_threads] */
	__u32 nr_threads;
	__u32 pad;
};

/*
 * After ANSWER: the callbacks have finished.  code: an error number that
 * ends the request, 0: none.  EINVAL: not after ANSWER.
 */
struct kcr_client_done {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 code;
	__u32 pad;
};

/*
 * Between WAIT and ANSWER: asks the requester to add more processes, and
 * sleeps until that is done.  Fails with the requester's error; EINVAL: not
 * between these; ECANCELED: there is no requester any more.
 */
struct kcr_client_forward {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 scope;
	__s32 target;
};

#define KCR_IOC_MAGIC		0xC7
#define KCR_IOC_CLIENT		_IOW(KCR_IOC_MAGIC, 0x40, struct kcr_client_new)
#define KCR_IOC_CLIENT_WAIT	_IOWR(KCR_IOC_MAGIC, 0x41, struct kcr_client_wait)
#define KCR_IOC_CLIENT_ANSWER	_IOWR(KCR_IOC_MAGIC, 0x42, struct kcr_client_answer)
#define KCR_IOC_CLIENT_DONE	_IOW(KCR_IOC_MAGIC, 0x43, struct kcr_client_done)
#define KCR_IOC_CLIENT_FORWARD	_IOW(KCR_IOC_MAGIC, 0x44, struct kcr_client_forward)

#endif /* _UAPI_LINUX_KCR_CLIENT_H */
