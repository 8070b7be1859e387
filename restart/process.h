/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a skeleton process, whose file descriptors and attributes are set, to the
 * saved process, asleep in KCR_IOC_ENTER.
 */
#ifndef KCR_RESTART_PROCESS_H
#define KCR_RESTART_PROCESS_H

#include <stdbool.h>

#include "rebuild/restorer.h"
#include "resource/family.h"
#include "resource/resource.h"

struct process_exit {
	struct rebuild *rebuild;
	const Kcr__Process *process;
	struct restorer_status *status;	/* shared by all processes */
	bool module_clones;		/* KCR_FEATURE_CLONE, and it has no filters */
	bool cont;			/* processes that were stopped run on */
};

/* Is q another process in the memory of p? */
static inline bool process_in_memory(const Kcr__Process *p, const Kcr__Process *q)
{
	return q != p && process_is_sharer(q) && q->mm_id == p->mm_id;
}

/*
 * Can this process be rebuilt here at all?  Call before anything is created.
 * -errno, reported.
 */
int process_check(const struct context *c, const Kcr__Process *p);

/*
 * Replaces the calling program.  Returns only on an error: -errno, reported;
 * nothing is torn down yet, and the caller should exit.  Later errors are in
 * *status.  All signals must be blocked.
 */
int process_become(const struct process_exit *how);

/* When all processes have been rebuilt: warns once of each that has lost its scheduling. */
void process_warn(const struct restorer_status *status);

#endif /* KCR_RESTART_PROCESS_H */
