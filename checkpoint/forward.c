// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that a callback adds to a checkpoint.  The tool may have more rights
 * than the requesting process: it adds only what that could trace itself, by the
 * rule of ptrace(2).  This is checked before and after a process is added, as it
 * may call exec(2) in between, and whenever the scope is collected again.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "device/device.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"

#define STATUS_SIZE	(64u << 10)

/* IDs as in /proc/PID/status; of a caller the last (fsuid, fsgid) count, as in ptrace(2). */
struct identity {
	unsigned int uid[4], gid[4];
	uint64_t permitted, effective;		/* capabilities */
};

/* What a callback asked for, and with which credentials. */
struct forward {
	enum checkpoint_scope scope;
	pid_t target;
	struct identity client;
};

static bool four_numbers(const char *status, const char *key, unsigned int number[4])
{
	const char *value = status_value(status, key);

	return value && sscanf(value, "%u %u %u %u", &number[0], &number[1], &number[2],
			       &number[3]) == 4;
}

/* 0, or -ESRCH (silently).  Unreadable capabilities count against the request. */
static int identify(pid_t thread, struct identity *out)
{
	static char status[STATUS_SIZE];

	if (proc_read(thread, "status", status, sizeof(status)) <= 0 ||
	    !four_numbers(status, "Uid", out->uid) || !four_numbers(status, "Gid", out->gid))
		return -ESRCH;
	out->permitted = status_number(status, "CapPrm", 16, UINT64_MAX);
	out->effective = status_number(status, "CapEff", 16, 0);
	return 0;
}

/* All four IDs: a setuid root program has another real one. */
static bool may_trace_any(const struct identity *client)
{
	for (int i = 0; i < 4; i++)
		if (client->uid[i])
			return false;
	return client->effective & 1ull << CAP_SYS_PTRACE;
}

/* The kernel gives this file of a non-dumpable process to root. */
static bool is_dumpable(pid_t thread, unsigned int uid)
{
	char path[PROC_PATH];
	struct stat st;

	return !stat(proc_path(path, thread, "mem"), &st) && st.st_uid == uid;
}

/* 0; -EPERM or -ESRCH (silently). */
static int may_add(const struct identity *client, const struct scope_process *p)
{
	struct identity target;
	int err = identify(p->thread, &target);

	if (err || may_trace_any(client))
		return err;
	for (int i = 0; i < 4; i++)
		if (target.uid[i] != client->uid[3] || target.gid[i] != client->gid[3])
			return -EPERM;
	if (target.permitted & ~client->effective)
		return -EPERM;
	return is_dumpable(p->thread, client->uid[3]) ? 0 : -EPERM;
}

static int not_yours(pid_t pid)
{
	return report_fail(-EPERM, "process %d, which a callback has added, is now one that the "
			   "callback's process may not trace", pid);
}

static bool is_wanted(const struct checkpoint *c, const struct scope_process *p)
{
	return !p->zombie && !is_excluded(c, p->pid);
}

/* 0: there are processes to add, and all may be added. */
static int check_scope(const struct checkpoint *c, const struct forward *f,
		       const struct scope *scope)
{
	size_t found = 0;
	int err = 0;

	for (size_t i = 0; !err && i < scope->count; i++) {
		const struct scope_process *p = &scope->process[i];

		if (!is_wanted(c, p))
			continue;
		found++;
		err = check_kind(c, p) ?: may_add(&f->client, p);
	}
	return err ? err : found ? 0 : -ESRCH;
}

/* *fatal: one that may not be added (any more) is in the job. */
static int add_scope(struct checkpoint *c, const struct forward *f, const struct scope *scope,
		     bool *fatal)
{
	int err = check_scope(c, f, scope);

	for (size_t i = 0; !err && i < scope->count; i++) {
		const struct scope_process *p = &scope->process[i];

		if (!is_wanted(c, p))
			continue;
		err = stop_add(c, p);
		if (err == -EEXIST)
			err = 0;
		if (!err && may_add(&f->client, p) == -EPERM) {
			report_clear();
			*fatal = true;
			err = not_yours(p->pid);
		}
	}
	return err;
}

static int add(struct checkpoint *c, const struct forward *f, bool *fatal)
{
	struct scope scope = {};
	int err = f->scope > CHECKPOINT_TREE || f->target <= 0 ? -EINVAL : 0;

	if (!err)
		err = scope_collect(&scope, f->scope, f->target, NULL, 0);
	if (!err && c->options->prohibited && scope_find(&scope, c->options->prohibited))
		err = -EDEADLK;
	if (!err)
		err = add_scope(c, f, &scope, fatal);
	scope_free(&scope);
	return err;
}

/* Only the callback gets to know about errors of the processes to add. */
int forward_add(struct checkpoint *c, struct kcr_notify *notify)
{
	struct forward f = { .scope = notify->forward_scope, .target = notify->forward_target };
	struct forward *larger;
	bool fatal = false;
	int err = identify(notify->pid, &f.client);

	if (!err)
		err = add(c, &f, &fatal);
	if (fatal)
		return err;
	if (!err) {
		larger = realloc(c->forward, (c->nr_forwards + 1) * sizeof(*larger));
		if (!larger) {
			err = -ENOMEM;
		} else {
			c->forward = larger;
			c->forward[c->nr_forwards++] = f;
		}
	}
	report_clear();
	notify->result = -err;
	return 0;
}

/* Checks processes that have joined or called exec since. */
static int check_again(const struct checkpoint *c, const struct forward *f,
		       const struct scope *more)
{
	for (size_t i = 0; i < more->count; i++) {
		const struct scope_process *p = &more->process[i];

		if (is_wanted(c, p) && !scope_find(&c->attempt.scope, p->pid) &&
		    may_add(&f->client, p) == -EPERM)
			return not_yours(p->pid);
	}
	return 0;
}

int forward_collect(struct checkpoint *c, const pid_t *member, size_t nr_members)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_forwards; i++) {
		const struct forward *f = &c->forward[i];
		struct scope more = {};

		err = scope_collect(&more, f->scope, f->target, member, nr_members);
		if (!err)
			err = check_again(c, f, &more);
		if (!err)
			err = scope_merge(&c->attempt.scope, &more);
		scope_free(&more);
	}
	return err;
}
