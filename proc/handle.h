/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process as a descriptor (pidfd_open(2)): its number may be another process's as soon as
 * it has ended and was waited for, and then a signal by number is for that one.
 */
#ifndef KCR_PROC_HANDLE_H
#define KCR_PROC_HANDLE_H

#include <sys/types.h>

/* Raises the limit of open files if need be.  A descriptor or -errno. */
int handle_open(pid_t pid);
/* As kill(2); ignored if it has ended or `fd` is negative. */
void handle_signal(int fd, int signal);
/* All of fd[count], and frees the list. */
void handles_close(int *fd, size_t count);

#endif /* KCR_PROC_HANDLE_H */
