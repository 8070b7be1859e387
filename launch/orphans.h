/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes whose parents, below a daemon, have ended: they become children of the daemon's first
 * thread.  What other threads have started is theirs, and nothing here is about it.
 */
#ifndef LAUNCH_ORPHANS_H
#define LAUNCH_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on.  A descriptor that is readable after the end of a child, or -errno. */
int orphans_adopt(void);

/* Waits for those that have ended, as nobody else will; not for a child that `is_known`. */
void orphans_reap(bool (*is_known)(void *argument, pid_t child), void *argument);

/* SIGKILL to them and all below them; likewise not to a child that is known. */
void orphans_kill(bool (*is_known)(void *argument, pid_t child), void *argument);

/* Has this thread any child, also one that has not been waited for? */
bool orphans_any_child(void);

#endif /* LAUNCH_ORPHANS_H */
