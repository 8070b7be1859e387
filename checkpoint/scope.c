// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the processes of a scope.  Small trees are walked from parent to
 * child (/proc/PID/task/TID/children), since this is done while the processes
 * are stopped and a scan of all of /proc takes longer; everything else takes
 * that scan.  Nothing here is final before the processes are stopped: stop.c
 * collects again until nothing new shows up.
 */
#include "checkpoint/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "proc/tree.h"
#include "report/report.h"

#define WALK_THREADS	64		/* above this, scan all of /proc */
#define WALK_PROCESSES	512		/* likewise; includes zombies */
#define EXITING_FLAG	0x00000004	/* PF_EXITING */
#define KTHREAD_FLAG	0x00200000	/* PF_KTHREAD */

static void set_name(struct scope_process *p, const char *stat)
{
	const char *start = strchr(stat, '('), *end = strrchr(stat, ')');
	size_t length;

	p->name[0] = '\0';
	if (!start || end <= start)
		return;
	length = end - start - 1;
	if (length >= sizeof(p->name))
		length = sizeof(p->name) - 1;
	memcpy(p->name, start + 1, length);
	p->name[length] = '\0';
}

static bool has_ended(const char *after_name)
{
	return after_name[2] == 'Z' || after_name[2] == 'X';
}

static bool thread_lives(pid_t tid)
{
	char stat[1024];
	const char *after;

	if (proc_read(tid, "stat", stat, sizeof(stat)) <= 0)
		return false;
	after = strrchr(stat, ')');
	return after && strlen(after) > 2 && !has_ended(after) &&
	       !(stat_number(stat, 9) & EXITING_FLAG);
}

/* The leader has exited: finds a thread that has not. */
static void find_thread(struct scope_process *p)
{
	DIR *threads = proc_list(p->pid, "task");
	pid_t tid;

	p->exiting = true;
	while (p->exiting && (tid = proc_next(threads)) >= 0) {
		if (tid == p->pid || !thread_lives(tid))
			continue;
		p->thread = tid;
		p->exiting = false;
	}
	if (threads)
		closedir(threads);
}

int scope_look(pid_t pid, struct scope_process *out)
{
	char stat[1024];
	const char *after;
	bool ended;

	if (proc_read(pid, "stat", stat, sizeof(stat)) <= 0)
		return -ESRCH;
	after = strrchr(stat, ')');
	if (!after || strlen(after) < 3)
		return -ESRCH;
	ended = has_ended(after);
	*out = (struct scope_process){
		.pid = pid,
		.thread = pid,
		.ppid = stat_number(stat, 4),
		.pgid = stat_number(stat, 5),
		.sid = stat_number(stat, 6),
		.exiting = stat_number(stat, 9) & EXITING_FLAG,
		.kernel_thread = stat_number(stat, 9) & KTHREAD_FLAG,
		.nr_threads = stat_number(stat, 20),
		.exit_signal = stat_number(stat, 38),
		.exit_code = stat_number(stat, 52),
	};
	out->zombie = ended && out->nr_threads <= 1;
	out->leader_gone = ended && out->nr_threads > 1;
	set_name(out, stat);
	if (out->leader_gone)
		find_thread(out);
	return 0;
}

static int append(struct scope *scope, const struct scope_process *p)
{
	if (scope->count == scope->capacity) {
		size_t capacity = scope->capacity ? 2 * scope->capacity : 64;
		void *larger = realloc(scope->process, capacity * sizeof(*scope->process));

		if (!larger)
			return report_errno(-ENOMEM, "list of processes");
		scope->process = larger;
		scope->capacity = capacity;
	}
	scope->process[scope->count++] = *p;
	return 0;
}

const struct scope_process *scope_find(const struct scope *scope, pid_t pid)
{
	for (size_t i = 0; i < scope->count; i++)
		if (scope->process[i].pid == pid)
			return &scope->process[i];
	return NULL;
}

pid_t scope_thread(const struct scope *scope, pid_t pid)
{
	const struct scope_process *p = scope_find(scope, pid);

	return p ? p->thread : pid;
}

void scope_free(struct scope *scope)
{
	free(scope->process);
	*scope = (struct scope){};
}

/* Adds a process by PID, unless it is there already, has exited or is this program. */
static int add_seed(struct scope *scope, pid_t pid)
{
	struct scope_process p;

	if (pid == getpid() || scope_find(scope, pid) || scope_look(pid, &p))
		return 0;
	return append(scope, &p);
}

/* ---- walking a tree ---------------------------------------------------------- */

/* -EAGAIN: it has vanished, and the kernel may have skipped another because of that. */
static int walk_child(void *arg, pid_t child)
{
	struct scope *scope = arg;
	struct scope_process p;

	if (child == getpid() || scope_find(scope, child))
		return 0;
	if (scope->count >= WALK_PROCESSES)
		return -E2BIG;
	return scope_look(child, &p) ? -EAGAIN : append(scope, &p);
}

static int walk_process(struct scope *scope, pid_t pid)
{
	int err = proc_each_child(pid, walk_child, scope);

	/* A thread that exited has left its children to another one. */
	return err == -ENOENT || err == -ESRCH ? -EAGAIN : err;
}

/* -E2BIG: too large to walk; -EAGAIN: changed meanwhile, or no `children` in /proc. */
static int walk_tree(struct scope *scope)
{
	int budget = WALK_THREADS, err;

	for (size_t i = 0; i < scope->count; i++) {
		const struct scope_process *p = &scope->process[i];

		if (p->zombie)
			continue;
		budget -= p->nr_threads;
		if (budget < 0)
			return -E2BIG;
		err = walk_process(scope, p->pid);
		if (err)
			return err;
	}
	return 0;
}

/* ---- scanning /proc ----------------------------------------------------------- */

int scope_each(int (*fn)(void *arg, const struct scope_process *p), void *arg)
{
	DIR *all = proc_list(PROC_ROOT, "");
	int err = 0;
	pid_t pid;

	if (!all)
		return report_errno(-errno, "cannot list /proc");
	while (!err && (pid = proc_next(all)) >= 0) {
		struct scope_process p;

		if (!scope_look(pid, &p))
			err = fn(arg, &p);
	}
	closedir(all);
	return err;
}

static int append_each(void *arg, const struct scope_process *p)
{
	return append(arg, p);
}

/* Adds the descendants, found in `all`, of everything in `scope`. */
static int add_descendants(struct scope *scope, const struct scope *all)
{
	for (size_t i = 0; i < scope->count; i++) {
		pid_t parent = scope->process[i].pid;

		for (size_t k = 0; k < all->count; k++) {
			const struct scope_process *p = &all->process[k];
			int err = 0;

			if (p->ppid == parent && p->pid != getpid() && !scope_find(scope, p->pid))
				err = append(scope, p);
			if (err)
				return err;
		}
	}
	return 0;
}

static bool is_ours(const struct scope *all, pid_t pid)
{
	while (pid > 1) {
		const struct scope_process *p = scope_find(all, pid);

		if (pid == getpid())
			return true;
		if (!p)
			break;
		pid = p->ppid;
	}
	return false;
}

/* Members of a group or session: first those whose parent is none, then their descendants. */
static int add_matching(struct scope *scope, const struct scope *all, enum checkpoint_scope kind,
			pid_t target)
{
	struct scope match = {};
	int err = 0;

	for (size_t i = 0; !err && i < all->count; i++) {
		const struct scope_process *p = &all->process[i];

		if ((kind == CHECKPOINT_GROUP ? p->pgid : p->sid) == target &&
		    !is_ours(all, p->pid))
			err = append(&match, p);
	}
	for (size_t i = 0; !err && i < match.count; i++)
		if (!scope_find(&match, match.process[i].ppid))
			err = append(scope, &match.process[i]);
	if (!err)
		err = add_descendants(scope, &match);
	scope_free(&match);
	return err;
}

/* ---- collecting --------------------------------------------------------------- */

static int add_seeds(struct scope *scope, pid_t target, const pid_t *member, size_t nr_members)
{
	int err = add_seed(scope, target);

	for (size_t i = 0; !err && i < nr_members; i++)
		err = add_seed(scope, member[i]);
	return err;
}

/* Parents before children: seeds are not in that order. */
static int sort(struct scope *scope)
{
	struct scope sorted = {};
	int err = 0;

	for (size_t i = 0; !err && i < scope->count; i++)
		if (!scope_find(scope, scope->process[i].ppid))
			err = append(&sorted, &scope->process[i]);
	if (!err)
		err = add_descendants(&sorted, scope);
	if (err) {
		scope_free(&sorted);
		return err;
	}
	scope_free(scope);
	*scope = sorted;
	return 0;
}

int scope_merge(struct scope *scope, const struct scope *more)
{
	int err = 0;

	for (size_t i = 0; !err && i < more->count; i++)
		if (!scope_find(scope, more->process[i].pid))
			err = append(scope, &more->process[i]);
	return err ? err : sort(scope);
}

static int collect_tree(struct scope *scope, pid_t target, const pid_t *member,
			size_t nr_members)
{
	struct scope all = {};
	int err, tries = 0;

	do {
		scope->count = 0;
		err = add_seeds(scope, target, member, nr_members);
		if (!err)
			err = walk_tree(scope);
	} while (err == -EAGAIN && ++tries < 10);
	if (err == -E2BIG || err == -EAGAIN) {
		err = scope_each(append_each, &all);
		scope->count = 0;
		if (!err)
			err = add_seeds(scope, target, member, nr_members);
		if (!err)
			err = add_descendants(scope, &all);
	}
	scope_free(&all);
	return err ? err : sort(scope);
}

int scope_collect(struct scope *scope, enum checkpoint_scope kind, pid_t target,
		  const pid_t *member, size_t nr_members)
{
	struct scope all = {};
	int err;

	scope->count = 0;
	switch (kind) {
	case CHECKPOINT_PROCESS:
		return add_seed(scope, target);
	case CHECKPOINT_TREE:
		return collect_tree(scope, target, member, nr_members);
	default:
		err = scope_each(append_each, &all);
		if (!err)
			err = add_matching(scope, &all, kind, target);
		scope_free(&all);
		return err;
	}
}
