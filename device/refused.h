/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why /dev/kcr was not opened, and what else its administrator does not allow:
 * messages that name the reason and who can change it.  All leave one with
 * report_fail() and return the -errno to end with.
 */
#ifndef KCR_DEVICE_REFUSED_H
#define KCR_DEVICE_REFUSED_H

#include <sys/types.h>

/* open(2) of the device failed.  ENOSYS: the module is not loaded. */
int refused_open(int err);
/* EDQUOT of any other call that makes or takes a process; pid 0: of nobody special. */
int refused_process(pid_t pid, int err);
/* The process may not be traced, or not any more. */
int refused_trace(pid_t pid);
/* EPERM of the call that makes a process; number: the one that was asked for, 0: any. */
int refused_clone(pid_t pid, pid_t number);

#endif /* KCR_DEVICE_REFUSED_H */
