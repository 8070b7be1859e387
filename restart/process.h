/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a skeleton process, whose descriptors and attributes are set, to its
 * saved self, asleep in KCR_IOC_ENTER.
 */
#ifndef KCR_RESTART_PROCESS_H
#define KCR_RESTART_PROCESS_H

#include <stdbool.h>

#include "rebuild/restorer.h"
#include "resource/resource.h"

struct process_exit {
	struct rebuild *rebuild;
	const Kcr__Process *process;
	struct restorer_status *status;	/* shared by all processes */
	bool module_clones;		/* KCR_FEATURE_CLONE */
	bool stopped;			/* it is to stop at once */
};

/*
 * Can this process be rebuilt here at all? To be asked before anything is
 * made.  -errno, reported.
 */
int process_check(const Kcr__Process *p);

/*
 * Does it live in another process's memory?  Then it is made by that
 * process's script, and nobody else makes it.
 */
bool process_is_sharer(const Kcr__Process *p);

/*
 * Leaves the calling program for ever.  Returns only on an error: -errno,
 * reported; nothing is torn down yet, and the caller should exit.  Later
 * errors are in *status.  All signals must be blocked.
 */
int process_become(const struct process_exit *how);

#endif /* KCR_RESTART_PROCESS_H */
