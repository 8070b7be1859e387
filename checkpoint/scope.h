/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which processes belong to a checkpoint, as /proc shows it at one moment.
 * The calling process and its descendants never do.
 */
#ifndef KCR_CHECKPOINT_SCOPE_H
#define KCR_CHECKPOINT_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "checkpoint/checkpoint.h"

struct scope_process {
	pid_t pid, ppid, pgid, sid;
	int nr_threads;
	bool zombie;			/* no thread is left */
	bool leader_gone;		/* the leader has exited, other threads have not */
	bool exiting;			/* the thread below is exiting */
	pid_t thread;			/* a living thread, for /proc/TID: the leader (pid), or
					 * another one if that has exited */
	bool kernel_thread;
	uint32_t exit_signal;
	uint32_t exit_code;		/* zombie: as wait(2) reports it */
	char name[64];
};

struct scope {
	struct scope_process *process;	/* parents before their children */
	size_t count;
	size_t capacity;
};

/*
 * Replaces the contents of *scope (zeroed before the first use).  `member`
 * are processes known to belong to it: with TREE, their descendants do too,
 * even if a parent's exit has cut them off from the target.
 */
int scope_collect(struct scope *scope, enum checkpoint_scope kind, pid_t target,
		  const pid_t *member, size_t nr_members);
/* Adds what is in `more` and not in *scope; parents stay first. */
int scope_merge(struct scope *scope, const struct scope *more);
void scope_free(struct scope *scope);

const struct scope_process *scope_find(const struct scope *scope, pid_t pid);
/* The `thread` of a process; pid if it is not in the scope. */
pid_t scope_thread(const struct scope *scope, pid_t pid);

/* 0, or -ESRCH (silently) if there is no such process. */
int scope_look(pid_t pid, struct scope_process *out);

/* Calls fn for every process in /proc, until it returns nonzero. */
int scope_each(int (*fn)(void *arg, const struct scope_process *p), void *arg);

#endif /* KCR_CHECKPOINT_SCOPE_H */
