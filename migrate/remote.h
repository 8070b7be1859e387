/* SPDX-License-Identifier: GPL-2.0 */
/* The target's cr_migrate, started through ssh or the like, and what passes after it. */
#ifndef KCR_MIGRATE_REMOTE_H
#define KCR_MIGRATE_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>

#include "restart/link.h"

struct remote {
	pid_t pid;			/* of ssh; 0: none */
	struct link link;		/* its standard output and input */
	bool lasting;			/* set before: a terminal's signals do not end it */
};

/*
 * Adds an argument to a command line for a shell, quoted if need be.  *line: malloc()ed, or
 * NULL.  0 or -ENOMEM with a message.
 */
int remote_quote(char **line, const char *argument);
/*
 * Runs `rsh`, a command of sh(1), with two arguments more: the host and a command line for
 * a shell there.  0 or -errno with a message.
 */
int remote_start(struct remote *r, const char *rsh, const char *host, const char *command);
/* Our standard input goes there, what comes from there to our standard output, to its end. */
void remote_relay(struct remote *r);
/* Closes the connection and waits for the end of ssh: its status, of waitpid(2). */
int remote_end(struct remote *r);

#endif /* KCR_MIGRATE_REMOTE_H */
