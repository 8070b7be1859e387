/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The source of a lazy migration: gives the pages that its images lack (checkpoint/postponed.h), when
 * the target asks for them, through a connection of their own (restart/link.h).  A thread does so,
 * from the moment when the target may begin to ask.
 */
#ifndef KCR_MIGRATE_PAGES_H
#define KCR_MIGRATE_PAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "image/compression.h"
#include "migrate/remote.h"

struct postponed;

struct pages {
	struct remote remote;		/* passes on what cr_restart there says */
	const char *host;
	struct compression compression;
	struct postponed *postponed;
	pthread_t thread;
	bool started;
	atomic_bool ended;		/* the thread */
	int result;			/* … with: 0: the target has all that it needs */
};

/*
 * Logs in once more: rsh and host as for remote_start(); `spool`: the folder there.  0 or -errno
 * with a message; pages_finish() or pages_drop() in any case.
 */
int pages_connect(struct pages *p, const char *rsh, const char *host, const char *spool);
/* 0 or -errno with a message. */
int pages_serve(struct pages *p);
/* Is the target still there, as far as we know?  0 or -errno with a message. */
int pages_check(const struct pages *p);
/*
 * Waits until the target needs no more.  0 or -errno with a message: it did not get all, so the
 * processes have ended there.
 */
int pages_finish(struct pages *p);
/* The processes run on here, and the target has been told, or has gone. */
void pages_drop(struct pages *p);

#endif /* KCR_MIGRATE_PAGES_H */
