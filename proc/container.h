/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The namespaces of a process, and entering them.  Nothing here reports errors.
 */
#ifndef KCR_PROC_CONTAINER_H
#define KCR_PROC_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct container {
	int process;		/* a pidfd of the process that is in it; -1: none */
	int namespaces;		/* CLONE_NEW*: those that are not the caller's */
	pid_t inner;		/* the process's PID in its own PID namespace */
	uid_t uid;		/* its user, as the caller sees it */
};

/*
 * Looks at a living process, by its PID in ours or that of its first thread.  c->namespaces
 * is 0 if it is in all of the caller's namespaces; its time namespace does not count.  0, or
 * -errno: -ESRCH, no such process; -EACCES, its namespaces cannot be seen.
 */
int container_find(pid_t pid, struct container *c);
/* Its PID in its own PID namespace; `pid` where that cannot be read. */
pid_t container_inner_pid(pid_t pid);
/*
 * Of a process below `top` with this PID in its own PID namespace, and of the group with this
 * number there: the number in ours.  -ESRCH: there is none.
 */
pid_t container_outer_pid(pid_t top, pid_t inner);
pid_t container_outer_group(pid_t top, pid_t inner);
/* Closes c->process. */
void container_forget(struct container *c);

/*
 * Enters the namespaces that differ: for PID namespaces, what the caller forks after this is
 * in it.  The caller has one thread; its working folder becomes the container's root
 * folder.  No process in there can use what the caller has open: it cannot be traced
 * any more but with the privileges of its old user namespace.  0, or -errno: -EPERM, they are
 * not the caller's to enter.  Of these are user namespaces with a process of another user:
 * who has rights in there may mount anything, a false /proc as well, and so lead
 * a caller with other rights to files that are not meant.
 */
int container_enter(const struct container *c);

/* The kinds in a set of CLONE_NEW*, as /proc names them ("mnt pid"); returns `text`. */
const char *container_names(int namespaces, char *text, size_t size);

/* Has the process ended?  Waits up to timeout_ms. */
bool container_has_ended(const struct container *c, int timeout_ms);

#endif /* KCR_PROC_CONTAINER_H */
