/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client: a process that is notified of checkpoints before it is stopped.  Its
 * own side (the descriptor) is kmod/client.c, the requester's kmod/notify.c.
 *
 * kcr_clients_lock guards all clients, their hash, job->clients and
 * job->finish_*.  It is global: it is held only for a limited number of
 * clients at a time.  It nests inside job->list_lock.  A client is freed
 * with its file; jobs see it only under the lock, and only while it lives.
 * While it is in job->clients it holds a reference to the job.
 */
#ifndef KCR_CLIENT_H
#define KCR_CLIENT_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "job.h"

enum kcr_client_state {
	KCR_CLIENT_IDLE,
	KCR_CLIENT_TOLD,	/* WAIT is to return */
	KCR_CLIENT_RUNNING,	/* between WAIT and ANSWER */
	KCR_CLIENT_ANSWERED,
	KCR_CLIENT_OUTCOME,	/* ANSWER is to return */
	KCR_CLIENT_FINISHING,	/* between ANSWER and DONE */
	KCR_CLIENT_DEAD,
};

enum kcr_forward_state {
	KCR_FORWARD_NONE,
	KCR_FORWARD_ASKED,	/* NOTIFY is to return */
	KCR_FORWARD_TAKEN,
	KCR_FORWARD_DONE,	/* FORWARD is to return */
};

struct kcr_client {
	struct hlist_node hash;		/* by pid */
	struct list_head node;		/* job->clients */
	struct pid *pid;		/* of the process, referenced */
	void *files;			/* its descriptor table; only compared */
	struct kcr_job *job;		/* the requesting job, or NULL */
	wait_queue_head_t wake;
	enum kcr_client_state state;
	struct task_struct *task;	/* the caller of ANSWER; only compared */
	u32 free;			/* KCR_ANSWER_FREE_* */
	u32 nr_threads;
	struct kcr_answer_thread *threads;	/* IDs in the initial PID namespace */
	u32 answer;
	u32 code;
	bool reported;			/* NOTIFY has returned for it */
	bool over;			/* RUNNING, but the outcome is known already */
	u32 outcome;
	int result;
	enum kcr_forward_state forward;
	u32 forward_scope;
	pid_t forward_target;
	int forward_result;		/* -errno */
	char *path;			/* of the context file, if restarted */
};

/* The arguments of the first NOTIFY, which later ones cannot change. */
struct kcr_notification {
	struct kcr_notice notice;
	char path[KCR_PATH_MAX];
};

extern spinlock_t kcr_clients_lock;

/* The live client of the process, or NULL.  kcr_clients_lock held. */
struct kcr_client *kcr_client_find(const struct pid *pid);
/* Is the process a client that this job has not notified?  job->list_lock held. */
bool kcr_client_is_untold(struct kcr_job *job, const struct pid *pid);

/*
 * Is this thread of the process to wait until callbacks are done?  `when` is one
 * of KCR_ANSWER_FREE_*.  job->list_lock held.
 */
bool kcr_client_holds(struct kcr_job *job, const struct pid *pid, const struct task_struct *task,
		      u32 when);

/* Puts it on job's list.  kcr_clients_lock held. */
void kcr_client_attach(struct kcr_client *client, struct kcr_job *job,
		       enum kcr_client_state state);
/* Takes it off; the caller must put the job that is returned after unlocking. */
struct kcr_job *kcr_client_detach(struct kcr_client *client);

/* ---- kmod/notify.c ---------------------------------------------------------- */

/* Tells all clients of the job that the request is over.  job->lock held. */
void kcr_clients_outcome(struct kcr_job *job, u32 outcome, int result);
/* The job ends: releases all clients that still wait for it. */
void kcr_clients_end(struct kcr_job *job);

#endif /* KCR_CLIENT_H */
