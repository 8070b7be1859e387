/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads with a working folder and file mode mask of their own (unshare(CLONE_FS)), and
 * processes that share the leader's memory but not these.  The leader enters the folder
 * before it creates one, which gets a copy of all this instead of sharing it, and then
 * leaves it again.
 */
#ifndef KCR_RESOURCE_THREAD_FOLDER_H
#define KCR_RESOURCE_THREAD_FOLDER_H

#include <stdbool.h>

#include "resource/resource.h"

/* Does it need a copy (a clone without CLONE_FS)? */
bool thread_folder_has(const Kcr__Thread *t);

/*
 * The system calls of the leader of p before and after it creates one: `who` is the
 * Kcr__Thread or Kcr__Process.  None, if that has no folder of its own.
 */
void thread_folder_enter(const Kcr__Process *p, const void *who, struct script *s);
void thread_folder_leave(const Kcr__Process *p, const void *who, struct script *s);

#endif /* KCR_RESOURCE_THREAD_FOLDER_H */
