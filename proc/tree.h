/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trees of processes, from parent to child (/proc/PID/task/TID/children).  They may change
 * during a walk: a child whose parent or elder sibling ends meanwhile may be missed.
 */
#ifndef KCR_PROC_TREE_H
#define KCR_PROC_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Calls fn for each child of each thread of a process, until it returns non-zero.
 * Returns what fn returned last, or -errno if the children of a thread could not be read;
 * those of the other threads are visited all the same.  -ENOENT, -ESRCH: the thread has
 * ended meanwhile and left its children to another, or the kernel does not list children.
 * A process that has ended has none: 0.
 */
int proc_each_child(pid_t pid, int (*fn)(void *arg, pid_t child), void *arg);

/* Has it a child, or is it not known? */
bool proc_has_child(pid_t pid);

/*
 * The PIDs of a process and all its visible descendants, itself first, parents
 * before children, in one malloc()ed array: what cr_checkpoint --tree saves.  Their
 * count, or -ENOMEM.
 */
ssize_t proc_tree(pid_t top, pid_t **out);

#endif /* KCR_PROC_TREE_H */
