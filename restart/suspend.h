/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Suspends seccomp in processes that are being rebuilt: their filters are installed, but
 * judge nothing before all threads have entered the module.  A helper process traces them
 * for that (PTRACE_O_SUSPEND_SECCOMP); its end detaches from all, wherever they are, and
 * leaves no trace in them.
 */
#ifndef KCR_RESTART_SUSPEND_H
#define KCR_RESTART_SUSPEND_H

#include "resource/resource.h"

/*
 * In cr_restart, before the first process is created: if one needs it, makes the helper;
 * fork_helper: as fork(2), but -errno.  0 or -errno, reported.
 */
int suspend_begin(const struct rebuild *r, pid_t (*fork_helper)(void));
/*
 * In the single-threaded process `index`, with r->new_pid[index] set: suspends what it
 * will install, and the threads that it creates.  0 or -errno, reported.
 */
int suspend_self(const struct rebuild *r, size_t index);
/* In cr_restart, when all have entered or the restart has failed: ends the helper. */
void suspend_end(void);

#endif /* KCR_RESTART_SUSPEND_H */
