/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The skeleton: bare processes with the old PIDs, parents, groups and sessions,
 * each of which then turns itself into the saved one (process.h).
 */
#ifndef KCR_RESTART_SKELETON_H
#define KCR_RESTART_SKELETON_H

#include "rebuild/restorer.h"
#include "resource/resource.h"
#include "restart/restart.h"

/*
 * Starts the creation of every process of the context.  Returns in the caller
 * only, once the roots have been forked: 0 or -errno.  Each process has its PID
 * in r->new_pid once that is known.  On an error the caller aborts by closing
 * the job.  Failures after a process has left cr_restart's memory are written to
 * *status (shared by all processes).  module_clones: KCR_IOC_CLONE works.
 */
int skeleton_make(struct rebuild *r, const struct restart_options *options,
		  struct restorer_status *status, bool module_clones);

#endif /* KCR_RESTART_SKELETON_H */
