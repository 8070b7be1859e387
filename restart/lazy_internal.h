/* SPDX-License-Identifier: GPL-2.0 */
/* The server of a lazy restart, for lazy_follow.c and lazy_serve.c. */
#ifndef KCR_RESTART_LAZY_INTERNAL_H
#define KCR_RESTART_LAZY_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "image/deferred.h"
#include "restart/areas.h"

/* A process that may lack memory. */
struct target {
	int fd;				/* its userfaultfd */
	size_t process;			/* lazy_server_add()'s number; of a child: its parent's */
	int32_t pid;			/* whose pages it has, in the file */
	bool begun;
	bool placed;			/* areas are where they are */
	bool gone;
	struct areas areas;
};

struct fault {
	struct target *target;
	uint64_t address;
};

struct lazy_server {
	int job;
	int end_fd;			/* the same: closed to end the job */
	struct deferred *deferred;
	struct target **target;
	size_t nr_targets;
	struct fault *fault;		/* not answered yet */
	size_t nr_faults, max_faults;
	char *pages;			/* a chunk */
	struct pollfd *poll;
	size_t max_polled;
	pthread_t thread;
	bool started;
	atomic_bool stop;
	int error;			/* of the thread, once it has ended … */
	char *message;			/* … and what it reported */
};

/* ---- lazy_follow.c: who is there, and what they do.  0 or -errno, silently ------------------- */

/* Takes over fd, also on an error; the rest, but for what a child has to find out, is the model's. */
int lazy_target_add(struct lazy_server *s, int fd, const struct target *model);
void lazy_targets_free(struct lazy_server *s);
/* Forgets those that are gone; pointers to targets are void then. */
void lazy_targets_sweep(struct lazy_server *s);
/*
 * Finds out where a child has its areas; t->placed stays false if that cannot be known yet, as
 * it has not been made or is about to change them.
 */
int lazy_target_place(struct lazy_server *s, struct target *t);
/* Follows what has happened, or happens within timeout_ms.  -ECANCELED: it is to end. */
int lazy_look(struct lazy_server *s, int timeout_ms);

#endif /* KCR_RESTART_LAZY_INTERNAL_H */
