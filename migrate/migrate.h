/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Live migration: pre-copy (checkpoint/precopy.h) whose images go to another machine, where
 * cr_restart makes the processes from the last one.  link.h says in which order, and why
 * there are never two copies that run; source.c and target.c are the two ends.
 */
#ifndef KCR_MIGRATE_MIGRATE_H
#define KCR_MIGRATE_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "migrate/remote.h"

struct migrate_options {
	/* What is migrated, and how it is saved; no destination. */
	struct checkpoint_options checkpoint;
	const char *host, *rsh;
	const char *command;		/* for a shell there: cr_migrate --receive … */
	/* Called when the target holds the processes, before they are killed here; or NULL. */
	void (*held)(void);
};

struct migrate_result {
	struct checkpoint_result checkpoint;	/* of the last image */
	uint64_t downtime_ns;		/* from the stop here to the start there */
};

/*
 * The source.  0: the processes run at the host, and have ended here; *r is connected to
 * them.  -errno with a message: they run on here, or the message says that it is not known.
 * No signal that ends us is delivered between the moment when the processes here are killed
 * and the end of this function.
 */
int migrate_from(const struct migrate_options *o, struct remote *r, struct migrate_result *result);

struct target_options {
	const char *spool;		/* folder for the images; NULL: TMPDIR, or /tmp */
	const char *restart;		/* the program cr_restart */
	char *const *arguments;		/* for it, NULL at the end */
	bool detach;			/* do not stand for the program */
};

/*
 * The target, with the source at standard input and output.  *status: how the restarted
 * program has ended, as of waitpid(2).  -errno: nothing was restarted; the source knows why.
 */
int migrate_to(const struct target_options *o, int *status);

#endif /* KCR_MIGRATE_MIGRATE_H */
