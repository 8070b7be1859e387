/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of /proc.  Begin here: all other rooms read /proc by these functions, fields of
 * `status` and `stat` by status.h, trees of processes by tree.h.  Nothing here reports
 * errors: the caller knows better what a failure means.
 *
 * `pid` is the PID of a process or a thread ID (/proc knows both), or one of the two
 * constants below.  Neither is 0 or -1, so an unknown PID is never found.  `name` is a
 * path in its folder, such as "status" or "task/7/stat"; "" is the folder.
 */
#ifndef KCR_PROC_PROC_H
#define KCR_PROC_PROC_H

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PROC_SELF	((pid_t)INT_MIN)	/* /proc/self: the calling process */
#define PROC_ROOT	((pid_t)(INT_MIN + 1))	/* /proc itself: "net/unix", "sys/kernel/…" */

#define PROC_PATH	160		/* bytes for a path; longer ones are truncated */

/* Writes the path of a file of a process to `path`, and returns it. */
const char *proc_path(char path[PROC_PATH], pid_t pid, const char *name);

/*
 * Opens a file, close-on-exec.  flags: of open(2).  The file descriptor or -errno:
 * -ENOENT, -ESRCH: no such process; -EACCES, -EPERM: no permission.
 */
int proc_open(pid_t pid, const char *name, int flags);

/* Opens a file to be read by lines; NULL with errno.  To be closed by fclose(3). */
FILE *proc_stream(pid_t pid, const char *name);

/*
 * Reads a file as a string: at most size - 1 bytes and a NUL.  Its length (size - 1:
 * there may be more) or -errno.
 */
ssize_t proc_read(pid_t pid, const char *name, char *buffer, size_t size);

/*
 * Reads all of a file, with a NUL after its *length bytes (length: may be NULL).
 * malloc()ed; NULL with errno.
 */
char *proc_text(pid_t pid, const char *name, size_t *length);

/*
 * As readlink(2), with a NUL: the length (size - 1: it may be truncated) or -errno.
 * -ENOENT, -ESRCH: no such process; -EACCES: no permission.
 */
ssize_t proc_link(pid_t pid, const char *name, char *buffer, size_t size);

/*
 * The name of the executable of a process without its folder, in `path` (size: as of
 * proc_link()), also if the file has been replaced or removed; NULL: it cannot be read.
 */
const char *proc_program(pid_t pid, char *path, size_t size);

/*
 * The environment that a process was started with, as a NULL-terminated vector in one
 * malloc()ed block; NULL: it cannot be read.
 */
char **proc_environment(pid_t pid);

/*
 * Lists the entries of a folder whose names are numbers: file descriptors ("fd"),
 * thread IDs ("task"), PIDs (PROC_ROOT, "").  NULL with errno.  To be closed by closedir(3).
 */
DIR *proc_list(pid_t pid, const char *name);
/* The next number; -1: there are no more, or list is NULL. */
int proc_next(DIR *list);

/* ---- the file behind a file descriptor of the caller ------------------------------- */

/* Its path in /proc, for calls that take only paths. */
const char *proc_fd_path(char path[PROC_PATH], int fd);

/* Its link, as proc_link(): an absolute path, or text such as "pipe:[7]". */
ssize_t proc_fd_link(int fd, char *buffer, size_t size);

/*
 * Opens the same file again, close-on-exec, with its own position and flags; also if
 * `fd` has O_PATH.  A file descriptor or -errno.
 */
int proc_fd_reopen(int fd, int flags);

/*
 * Opens a regular file to be read, close-on-exec; flags: 0 or O_NOFOLLOW.  What is none is not opened, as
 * opening alone has effects on some devices.  *st is what it is.  A file descriptor or -errno: -EINVAL, it
 * is none.
 */
int proc_open_regular(int folder, const char *path, int flags, struct stat *st);

#endif /* KCR_PROC_PROC_H */
