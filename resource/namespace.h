/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KCR_RESOURCE_NAMESPACE_H
#define KCR_RESOURCE_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Reports that a process (`thread`: a living one of it) is in another namespace than the
 * caller, with the command that enters it; what: "is in another mnt namespace".
 * -EOPNOTSUPP.
 */
int namespace_refuse(pid_t pid, pid_t thread, const char *what);

/*
 * Refuses, -EOPNOTSUPP, what makes its children in another PID namespace than the caller does, or in
 * another time namespace than it is in: thread `tid` of a process, named if is_thread.
 */
int namespace_check_children(pid_t pid, pid_t tid, bool is_thread);

#endif /* KCR_RESOURCE_NAMESPACE_H */
