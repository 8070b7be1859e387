/* SPDX-License-Identifier: GPL-2.0 */
/* What lazy_begin.c and lazy_serve.c know of a lazy restart; see lazy.h. */
#ifndef KCR_RESTART_LAZY_STATE_H
#define KCR_RESTART_LAZY_STATE_H

#include <pthread.h>
#include <stdbool.h>

#include "image/page_index.h"
#include "restart/faults.h"
#include "restart/lazy.h"
#include "restart/missing.h"

#define LAZY_CHUNKS	4u		/* kept in memory */

/* An address space that is not complete. */
struct space {
	int fd;				/* its userfaultfd */
	pid_t pid;			/* for messages: the process, or what forked it */
	bool forked;			/* since the restart */
	bool over;			/* complete, or gone */
	struct missing missing;
	struct uffd_msg *message;	/* read, but not dealt with */
	size_t nr_messages, room;
};

struct lazy_chunk {
	size_t number;			/* SIZE_MAX: none */
	uint64_t used;			/* when, in uses */
	char *pages;
};

struct lazy {
	struct page_index *index;
	struct space *space;
	size_t nr_spaces, room;
	struct lazy_chunk chunk[LAZY_CHUNKS];
	uint64_t uses;
	size_t next;			/* chunk in file order */
	size_t wanted;			/* chunk for which somebody has waited; SIZE_MAX: none */
	bool full;			/* the last fork could not be taken over: no descriptor left */
	pthread_t thread;
	bool serving;			/* the thread has been started */
	int job;
	int error;			/* of the thread, with a message */
	bool closed;			/* the thread has closed the job */
	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t changed;
	bool stop, running;
};

/* Without an index yet; NULL: no memory. */
struct lazy *lazy_new(void);
/* Brings pages until all address spaces are complete or gone.  0 or -errno, reported. */
int lazy_run(struct lazy *l);
/* Adds an address space; takes over the descriptor.  0 or -ENOMEM. */
int lazy_add_space(struct lazy *l, const struct space *space);
/* A chunk's pages, verified, until the next call; NULL with an error in *err, reported. */
const char *lazy_chunk(struct lazy *l, size_t number, int *err);

#endif /* KCR_RESTART_LAZY_STATE_H */
