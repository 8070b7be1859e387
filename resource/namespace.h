/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KCR_RESOURCE_NAMESPACE_H
#define KCR_RESOURCE_NAMESPACE_H

#include <sys/types.h>

/*
 * Reports that a process (`thread`: a living one of it) is in another namespace than the
 * caller, with the command that enters it; what: "is in another mnt namespace".
 * -EOPNOTSUPP.
 */
int namespace_refuse(pid_t pid, pid_t thread, const char *what);

#endif /* KCR_RESOURCE_NAMESPACE_H */
