/* SPDX-License-Identifier: GPL-2.0 */
/* Processes of cr_restart itself that must not have an ID which the program is to get. */
#ifndef KCR_UTIL_SPARE_PID_H
#define KCR_UTIL_SPARE_PID_H

#include <sys/types.h>

#include "image/context.h"

/* As fork(2), with a PID behind all that are saved where the caller may choose it; or -errno. */
pid_t spare_pid_fork(const struct context *c);

#endif /* KCR_UTIL_SPARE_PID_H */
