/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who forks whom: turns the saved parents, sessions and groups into an order
 * of fork, setsid and setpgid that recreates them.
 */
#ifndef KCR_RESOURCE_FAMILY_H
#define KCR_RESOURCE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "image/context.h"

#define FAMILY_OUTSIDE	((size_t)-1)	/* instead of an index: not in the file */

struct relation {
	size_t parent;		/* index of the process, or FAMILY_OUTSIDE: cr_restart */
	size_t session;		/* the session's leader; OUTSIDE: cr_restart's session */
	size_t group;		/* whose PID is the group's; OUTSIDE: see `group_number` */
	/*
	 * With group OUTSIDE: 0: cr_restart's own group; else the ID of a group in
	 * a saved session, whose leader (the group's) has exited.
	 */
	int group_number;
	/* Forked by its session's leader through a helper, then adopted by `parent`. */
	bool hosted;
	/* Forked by its parent before that called setsid(). */
	bool early;
	/* Has left the group that it led and that others are in: leads that until they have joined. */
	bool moves;
};

/* One relation per process (malloc'ed), or NULL (ENOMEM). */
struct relation *family_plan(Kcr__Process *const *process, size_t count);

/*
 * Can a restart make them, each as the child of its parent and in its session?  0 or -errno,
 * reported.
 */
int family_check(Kcr__Process *const *process, size_t count);

/*
 * Does it share the memory of another process (CLONE_VM)?  Then that process's script creates
 * it, not the skeleton.
 */
static inline bool process_is_sharer(const Kcr__Process *p)
{
	return p->state != KCR__PROCESS__STATE__ZOMBIE && !p->mm;
}

static inline bool process_is_among(Kcr__Process *const *process, size_t count, int pid)
{
	for (size_t i = 0; i < count; i++)
		if (process[i]->pid == pid)
			return true;
	return false;
}

#endif /* KCR_RESOURCE_FAMILY_H */
