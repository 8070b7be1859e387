/* SPDX-License-Identifier: GPL-2.0 */
/* Are the saved process and thread IDs free?  Only a look: they may be taken meanwhile. */
#ifndef KCR_RESTART_IDS_H
#define KCR_RESTART_IDS_H

#include <sys/types.h>

#include "resource/resource.h"

/* One may be in use for a while yet: the killed original's, which is not reaped. */
#define IDS_TRIES	30
#define IDS_WAIT_US	10000

/* Without waiting, threads included.  0 or -EBUSY, reported; 0 if the processes get new IDs. */
int ids_check(const struct rebuild *r);
/*
 * Before any file is touched, which the program may be using: waits as long as that takes for what
 * has been killed.  Threads are looked for later, and IDs that are cr_restart's or only a group's.
 * As ids_check().
 */
int ids_await(const struct rebuild *r);
/* Reports that the ID is in use as that of a process: -EBUSY. */
int ids_refuse(pid_t pid);

#endif /* KCR_RESTART_IDS_H */
