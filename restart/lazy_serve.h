/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The threads that give memory to the programs of a lazy restart while they run, until all of
 * it is loaded or nobody is left who could use it.
 */
#ifndef KCR_RESTART_LAZY_SERVE_H
#define KCR_RESTART_LAZY_SERVE_H

#include "image/deferred.h"

struct lazy_server;

/* What is deferred stays the caller's.  0 or -errno with a message. */
int lazy_server_new(struct lazy_server **out, int job, struct deferred *deferred);
/* Takes over the userfaultfd of a process, which is called by any number.  0 or -errno. */
int lazy_server_add(struct lazy_server *s, int fd, size_t process);
/* Its pages there, which are those of `pid` in the file, are given by us.  0 or -errno. */
int lazy_server_arm(struct lazy_server *s, size_t process, int32_t pid, uint64_t start,
		    uint64_t end);
/* loaded: called when all is loaded, by the thread; or NULL.  0 or -errno with a message. */
int lazy_server_start(struct lazy_server *s, void (*loaded)(void));
/* Waits for the end, and closes the job.  0 or -errno with a message: the programs were killed. */
int lazy_server_wait(struct lazy_server *s);
/* Closes the job, which kills the programs, and then ends the thread. */
void lazy_server_stop(struct lazy_server *s);
void lazy_server_free(struct lazy_server *s);

#endif /* KCR_RESTART_LAZY_SERVE_H */
