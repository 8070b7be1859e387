// SPDX-License-Identifier: GPL-2.0
/*
 * Parents, sessions and groups of the saved processes.  A process is in a session
 * because it started it or was forked inside it.  So one that neither leads its
 * session nor is in one of its parent's was forked by a process that has exited
 * since, and was adopted: it is forked by a helper of its session's leader, which
 * exits likewise.
 */
#include "resource/family.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report.h"
#include "resource/thread_folder.h"

struct processes {
	Kcr__Process *const *process;
	size_t count;
};

static size_t find(const struct processes *c, int pid)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->process[i]->pid == pid)
			return i;
	return FAMILY_OUTSIDE;
}

/* Only leaders of that very session: the PID may have been reused. */
static size_t find_session(const struct processes *c, const Kcr__Process *p)
{
	size_t leader = find(c, p->sid);

	if (leader != FAMILY_OUTSIDE && c->process[leader]->sid != p->sid)
		return FAMILY_OUTSIDE;
	return leader;
}

/* The session in which the leader of a session started: its parent's. */
static size_t first_session(const struct relation *all, size_t leader)
{
	size_t parent = all[leader].parent;

	return parent == FAMILY_OUTSIDE ? FAMILY_OUTSIDE : all[parent].session;
}

static void plan_one(struct relation *all, size_t i)
{
	struct relation *r = &all[i];

	if (r->session == i)
		return;			/* calls setsid() wherever it is forked */
	if (r->parent == FAMILY_OUTSIDE) {
		r->hosted = r->session != FAMILY_OUTSIDE;
		return;
	}
	if (all[r->parent].session == r->session)
		return;
	if (all[r->parent].session == r->parent &&
	    first_session(all, r->parent) == r->session)
		r->early = true;
	else
		r->hosted = true;
}

struct relation *family_plan(Kcr__Process *const *process, size_t count)
{
	const struct processes c = { process, count };
	struct relation *all = calloc(count ? count : 1, sizeof(*all));

	if (!all)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const Kcr__Process *p = process[i];

		all[i].parent = find(&c, p->ppid);
		all[i].session = find_session(&c, p);
		/* No other process gets a PID that is a group's. */
		all[i].group = find(&c, p->pgid);
		if (all[i].group != FAMILY_OUTSIDE)
			all[all[i].group].moves |= process[all[i].group]->pgid != p->pgid;
		else if (all[i].session != FAMILY_OUTSIDE)
			all[i].group_number = p->pgid;
	}
	for (size_t i = 0; i < count; i++)
		plan_one(all, i);
	return all;
}

/* ---- what cannot be made ---------------------------------------------------------- */

/* Who adopts a process whose parent, a child of this leader of a session, exits? */
static size_t adopter(Kcr__Process *const *process, size_t count, const struct relation *all,
		      size_t leader)
{
	for (size_t steps = 0; leader != FAMILY_OUTSIDE && steps <= count; steps++) {
		if (process[leader]->subreaper)
			return leader;
		leader = all[leader].parent;
	}
	return FAMILY_OUTSIDE;
}

static bool has_own_folders(const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++)
		if (thread_folder_has(p->thread[i]))
			return true;
	return false;
}

static bool wants_death_signal(const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->pdeath_signal)
			return true;
	return false;
}

/* The process that has the memory which this one shares; NULL: it is not there. */
static const Kcr__Process *memory_owner(Kcr__Process *const *process, size_t count,
					const Kcr__Process *q)
{
	for (size_t i = 0; i < count; i++)
		if (process[i]->mm && process[i]->mm_id == q->mm_id)
			return process[i];
	return NULL;
}

/* The leader of the owner creates it, like a thread, and nothing comes between the two. */
static int check_sharer(Kcr__Process *const *process, size_t count, const Kcr__Process *q)
{
	const Kcr__Process *p = memory_owner(process, count, q);
	bool parent = false;

	for (size_t i = 0; i < count; i++)
		parent |= process[i]->ppid == q->pid;
	if (p && q->ppid == p->pid && q->sid == p->sid && !parent &&
	    (q->pgid == p->pgid || q->pgid == q->pid) && !has_own_folders(q) &&
	    !(p->has_leader_exit_code && wants_death_signal(q)))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d shares its memory with process %d in a way that "
			   "cannot be restarted: it %s", q->pid, p ? p->pid : q->ppid,
			   parent ? "has children" :
			   !p || q->ppid != p->pid ? "is not that one's child" :
			   q->sid != p->sid || q->pgid != p->pgid ? "is in another session or group" :
			   "has threads with folders of their own, or a signal for its parent's end");
}

/* See plan_one(): one that is not forked by its parent must be adopted by it. */
static int check_place(Kcr__Process *const *process, size_t count, const struct relation *all,
		       size_t i)
{
	const struct relation *r = &all[i];

	if (!r->hosted || (r->session != FAMILY_OUTSIDE &&
			   adopter(process, count, all, r->session) == r->parent))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d cannot be made a child of process %d again: that "
			   "is not in its session, %d, and would not adopt it",
			   process[i]->pid, process[i]->ppid, process[i]->sid);
}

/* Is the leader of its group there when it joins? */
static int check_group(Kcr__Process *const *process, const struct relation *all, size_t i)
{
	size_t leader = all[i].group;

	if (leader == FAMILY_OUTSIDE || leader == i || process_is_sharer(process[i]))
		return 0;
	if (process_is_sharer(process[leader]))
		return report_fail(-EOPNOTSUPP, "process %d cannot be put into its group again: process %d, "
				   "which led that, shares the memory of another", process[i]->pid,
				   process[leader]->pid);
	if (all[i].moves && all[leader].moves)
		return report_fail(-EOPNOTSUPP, "processes %d and %d cannot be made again: both have left the "
				   "groups that they led, one for that of the other", process[i]->pid,
				   process[leader]->pid);
	return 0;
}

int family_check(Kcr__Process *const *process, size_t count)
{
	struct relation *all = family_plan(process, count);
	int err = 0;

	if (!all)
		return report_errno(-ENOMEM, "parents and sessions");
	for (size_t i = 0; i < count && !err; i++) {
		err = process_is_sharer(process[i]) ? check_sharer(process, count, process[i]) :
						      check_place(process, count, all, i);
		if (!err)
			err = check_group(process, all, i);
	}
	free(all);
	return err;
}
