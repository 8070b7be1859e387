/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a tool reports to libcr when that runs it for a program (--status-fd): lines
 * that begin with a byte 1, among the messages.  Without the option nothing
 * happens.  libcr/request.c is the reader.
 */
#ifndef KCR_UTIL_STATUS_H
#define KCR_UTIL_STATUS_H

#include <sys/types.h>

/* From the argument of --status-fd: 0, or -EINVAL with a message. */
int status_open(const char *number);
/* The request is accepted: all that can be checked beforehand was checked. */
void status_begun(void);
/* It is over: 0 or an error number; pid: of the restarted leader, 0: none.  Async-signal-safe. */
void status_done(int error, pid_t pid);
/* Was --status-fd given, and is it still read? */
int status_is_open(void);

#endif /* KCR_UTIL_STATUS_H */
