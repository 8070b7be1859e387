/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server of a lazy restart, for lazy_follow.c, lazy_load.c and lazy_serve.c.
 *
 * Who is where is changed by the server's thread alone, with `places` locked to write; the
 * loaders hold it to read while they give pages, so that nothing is followed meanwhile.
 */
#ifndef KCR_RESTART_LAZY_INTERNAL_H
#define KCR_RESTART_LAZY_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "image/deferred.h"
#include "restart/areas.h"
#include "restart/loading.h"

struct loaders;

/* A process that may lack memory. */
struct target {
	uint64_t number;		/* its own; later ones have higher numbers */
	int fd;				/* its userfaultfd */
	size_t process;			/* lazy_server_add()'s number; of a child: its parent's */
	int32_t pid;			/* whose pages it has, in the file */
	bool begun;
	bool placed;			/* areas are where they are */
	atomic_bool gone;
	struct areas areas;
};

struct fault {
	struct target *target;
	uint64_t address;
};

struct lazy_server {
	int job;
	int end_fd;			/* the same: closed to end the job */
	int news;			/* an eventfd: somebody has something for the thread */
	const struct deferred *deferred;
	struct loaders *loaders;	/* NULL: not started yet */
	pthread_rwlock_t places;	/* of these: */
	struct target **target;		/* by number */
	size_t nr_targets;
	uint64_t next_number;
	struct fault *fault;		/* not answered yet */
	size_t nr_faults, max_faults;
	struct pollfd *poll;
	size_t max_polled;
	pthread_t thread;
	struct loading loading;
	void (*loaded)(void);		/* or NULL */
	bool started;
	atomic_bool stop;
	int error;			/* of the thread, once it has ended … */
	char *message;			/* … and what it reported */
};

/* Has the thread look again. */
void lazy_server_wake(const struct lazy_server *s);

/* ---- lazy_follow.c: who is there, and what they do.  0 or -errno, silently ------------------- */

/* Takes over fd, also on an error; the rest, but for what a child has to find out, is the model's. */
int lazy_target_add(struct lazy_server *s, int fd, const struct target *model);
/* The first one whose number is at least that, or NULL.  `places` held. */
struct target *lazy_target_from(const struct lazy_server *s, uint64_t number);
void lazy_targets_free(struct lazy_server *s);
/* Forgets those of which that is wanted, or that are gone.  `places` held to write. */
void lazy_targets_sweep(struct lazy_server *s);
/*
 * Follows what has happened, or happens within timeout_ms (-1: whenever it does), also if it is
 * that somebody woke us.  -ECANCELED: the server is to end.
 */
int lazy_look(struct lazy_server *s, int timeout_ms);

/* ---- lazy_load.c: the threads that read chunks and give their pages -------------------------- */

/* 0 or -errno, silently. */
int loaders_start(struct lazy_server *s);
/* Waits until what they are doing is done. */
void loaders_end(struct loaders *l);
void loaders_free(struct loaders *l);
/* Is the chunk loaded?  Else it is next, beginning with the page at `origin` in the image. */
bool loaders_want(struct loaders *l, size_t chunk, uint64_t origin);
/* 1: all is loaded, 0, or the first -errno. */
int loaders_result(struct loaders *l);

#endif /* KCR_RESTART_LAZY_INTERNAL_H */
