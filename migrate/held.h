/* SPDX-License-Identifier: GPL-2.0 */
/* A cr_restart that is held (--hold-fd) until we let it go on. */
#ifndef KCR_MIGRATE_HELD_H
#define KCR_MIGRATE_HELD_H

#include <stdbool.h>
#include <sys/types.h>

#include "migrate/migrate.h"

struct held {
	pid_t pid;			/* of cr_restart; 0: none */
	int fd;				/* to it; -1: closed */
};

struct held_work {
	const struct target_options *options;
	const char *file;		/* or NULL: held_name() says it later */
	bool check;			/* it only looks */
	bool lazy;
	int pages_fd;			/* with lazy: to who has the pages that the file lacks; -1: it lacks none */
};

/* What it has said. */
enum held_state {
	HELD_READY,			/* all is restored */
	HELD_RUNNING,
	HELD_LOADED,			/* all memory is there; after HELD_RUNNING */
	HELD_FAILED,			/* why: in the failure */
	HELD_ENDED,			/* nothing more, as with --check when it is possible */
};

/* Starts it.  0 or -errno with a message. */
int held_start(struct held *h, const struct held_work *work);
/* It waits for the file, which is there now. */
void held_name(struct held *h, const char *file);
/* Waits for what it says next. */
enum held_state held_listen(struct held *h, struct link_failure *failure);
/* Lets it go on.  What becomes of it says held_listen(). */
void held_let_go(struct held *h);
/* Closes the connection, so that it undoes what it has not let go, and waits for its end. */
int held_end(struct held *h);

#endif /* KCR_MIGRATE_HELD_H */
