/* SPDX-License-Identifier: GPL-2.0 */
/* What /proc tells of a process of the job. */
#ifndef MPI_JOB_PROCESS_H
#define MPI_JOB_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* /proc/PID/NAME, with a NUL after its *length bytes; malloc()ed or NULL. */
char *process_text(pid_t pid, const char *name, size_t *length);

/*
 * The environment that the process was started with, as a NULL-terminated vector in
 * one malloc()ed piece; NULL: none can be read.
 */
char **process_environment(pid_t pid);

/*
 * The process and all its descendants, itself first, in one malloc()ed array: what
 * cr_checkpoint saves of it.  The count, or -ENOMEM.
 */
ssize_t process_tree(pid_t top, pid_t **out);

#endif /* MPI_JOB_PROCESS_H */
