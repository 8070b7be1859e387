/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why /dev/kcr was not opened, and what else its administrator does not allow:
 * messages that name the reason and who can change it.  All leave one with
 * report_fail() and return the -errno to end with.
 */
#ifndef KCR_DEVICE_REFUSED_H
#define KCR_DEVICE_REFUSED_H

#include <stdbool.h>
#include <sys/types.h>

/* open(2) of the device failed.  ENOSYS: the module is not loaded. */
int refused_open(int err);
/* EDQUOT of any other call that creates or adds a process; pid 0: no particular one. */
int refused_process(pid_t pid, int err);
/* The process may not be traced (any more). */
int refused_trace(pid_t pid);
/* Is nobody without CAP_CHECKPOINT_RESTORE to choose PIDs (restore_ids)?  No message. */
bool refused_all_ids(void);
/* EPERM of the call that creates a process; number: the requested PID, 0: any. */
int refused_clone(pid_t pid, pid_t number);

#endif /* KCR_DEVICE_REFUSED_H */
