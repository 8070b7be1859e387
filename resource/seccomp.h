/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Filters of system calls (seccomp(2)).  Only a tracer with CAP_SYS_ADMIN can read them,
 * thread by thread, in a ptrace stop: checkpoint/filters.c brings that about before the
 * checkpoint, and what was read is remembered here.  A filter is never removed, so what
 * was read holds for as long as the thread has as many of them.
 *
 * A restart installs them while a tracer suspends them (restart/suspend.c), or the first
 * would judge what the restart itself has yet to call.
 */
#ifndef KCR_RESOURCE_SECCOMP_H
#define KCR_RESOURCE_SECCOMP_H

#include <stdbool.h>

#include "resource/resource.h"

/* Has this thread filters (status: its status text) that were not read yet? */
bool seccomp_is_unread(pid_t pid, pid_t tid, const char *status);
/*
 * Reads and remembers the filters of a thread that is in a ptrace stop of the caller.
 * 0 or -errno, reported: -EOPNOTSUPP, one of them cannot be restored.
 */
int seccomp_read(pid_t pid, pid_t tid);
/* Has save_thread() met a thread with filters that were not read (-EAGAIN)? */
bool seccomp_has_missed(void);
/* Lists what threads refer to in the image; the list stays this file's. */
void seccomp_list(Kcr__Preamble *preamble);

/* Has one of its threads filters, or strict mode? */
bool seccomp_has(const Kcr__Process *p);
/* May the caller restore them?  0 or -EPERM, reported. */
int seccomp_may_restore(const Kcr__Process *p);
/* Bytes that they need in the scripts of a process, at most. */
uint64_t seccomp_script_size(const struct context *c, const Kcr__Process *p);

#endif /* KCR_RESOURCE_SECCOMP_H */
