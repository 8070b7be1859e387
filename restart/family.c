// SPDX-License-Identifier: GPL-2.0
/*
 * Parents, sessions and groups of the saved processes.  A process is in a session
 * because it started it or was forked inside it.  So one that neither leads its
 * session nor is in one of its parent's was forked by a process that has exited
 * since, and was adopted: it is forked by a helper of its session's leader, which
 * exits likewise.
 */
#include "restart/family.h"

#include <stdlib.h>

static size_t find(const struct context *c, int pid)
{
	for (size_t i = 0; i < c->nr_processes; i++)
		if (c->process[i]->pid == pid)
			return i;
	return FAMILY_OUTSIDE;
}

/* Only leaders of that very session: the PID may have been reused. */
static size_t find_session(const struct context *c, const Kcr__Process *p)
{
	size_t leader = find(c, p->sid);

	if (leader != FAMILY_OUTSIDE && c->process[leader]->sid != p->sid)
		return FAMILY_OUTSIDE;
	return leader;
}

static size_t find_group(const struct context *c, const Kcr__Process *p)
{
	size_t leader = find(c, p->pgid);

	if (leader != FAMILY_OUTSIDE && c->process[leader]->pgid != p->pgid)
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

struct relation *family_plan(const struct context *c)
{
	struct relation *all = calloc(c->nr_processes ? c->nr_processes : 1, sizeof(*all));

	if (!all)
		return NULL;
	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Process *p = c->process[i];

		all[i].parent = find(c, p->ppid);
		all[i].session = find_session(c, p);
		all[i].group = find_group(c, p);
		if (all[i].group == FAMILY_OUTSIDE && all[i].session != FAMILY_OUTSIDE)
			all[i].group_number = p->pgid;
	}
	for (size_t i = 0; i < c->nr_processes; i++)
		plan_one(all, i);
	return all;
}
