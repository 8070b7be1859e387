/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KCR_PROC_NAMESPACE_H
#define KCR_PROC_NAMESPACE_H

#include <stdbool.h>

/*
 * Is the caller in the first user or PID namespace of the machine, not in that of a
 * container?  kind: "user" or "pid".
 */
bool namespace_is_first(const char *kind);

#endif /* KCR_PROC_NAMESPACE_H */
