/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live migration: pre-copy (checkpoint/precopy.h) whose images go to another machine, where
 * cr_restart makes the processes from the last one.  link.h says in which order, and why
 * there are never two copies that run; source.c and target.c are the two ends.
 *
 * Or, lazily, post-copy: there are no rounds, large memory is not in the last image, and the target
 * asks for it while the processes run there.  The processes have been killed here by then, as
 * always: what is sent is the module's copy of their memory (checkpoint/postponed.h).
 */
#ifndef KCR_MIGRATE_MIGRATE_H
#define KCR_MIGRATE_MIGRATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "migrate/pages.h"
#include "migrate/remote.h"

/* If the user does not say: those after the first few are small. */
#define MIGRATE_ROUNDS	16u

struct migrate_options {
	/* What is migrated, and how it is saved; no destination. */
	struct checkpoint_options checkpoint;
	bool lazy;
	const char *host, *rsh;
	bool tcp;			/* rsh is tcp_connect(), which says why it fails */
	const char *command;		/* for a shell there: cr_migrate --receive … */
	/* Called when the target holds the processes, before they are killed here; or NULL. */
	void (*held)(void);
};

struct migrate_result {
	struct checkpoint_result checkpoint;	/* of the last image */
	uint64_t downtime_ns;		/* from the stop here to the start there */
	struct pages pages;		/* for migrate_rest() */
	sigset_t mask;			/* … the old one, with `lazy` */
	bool lazy;
	uint64_t nr_postponed;		/* pages that the target asks for afterwards */
};

/*
 * The source.  0: the processes run at the host, and have ended here; *r is connected to
 * them.  -errno with a message: they run on here, or the message says that it is not known.
 * No signal that ends us is delivered between the moment when the processes here are killed
 * and the end of this function, or, of a lazy one, of migrate_rest().
 */
int migrate_from(const struct migrate_options *o, struct remote *r, struct migrate_result *result);
/*
 * After a success: waits until the target has all memory; not lazy: returns at once.  0 or -errno
 * with a message: the processes have been ended there.
 */
int migrate_rest(struct migrate_result *result);

struct target_options {
	const char *spool;		/* folder for the images; NULL: TMPDIR, or /tmp */
	const char *restart;		/* the program cr_restart */
	char *const *arguments;		/* for it, NULL at the end */
	bool detach;			/* do not stand for the program */
	bool lazy;			/* as the source's */
};

/*
 * The target, with the source at standard input and output.  *status: how the restarted
 * program has ended, as of waitpid(2).  -errno: nothing was restarted; the source knows why.
 */
int migrate_to(const struct target_options *o, int *status);

#endif /* KCR_MIGRATE_MIGRATE_H */
