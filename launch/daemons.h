/* SPDX-License-Identifier: GPL-2.0 */
/* The daemons of the job, as far as cr_mpirun (watch.h) waits for what they have to say. */
#ifndef LAUNCH_DAEMONS_H
#define LAUNCH_DAEMONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/coordinator/wire.h"

enum daemon_state { DAEMON_UNKNOWN, DAEMON_JOINED, DAEMON_SYNCED, DAEMON_GONE };

struct daemon {
	enum daemon_state state;
	char *name;		/* of its node; NULL: not known */
	struct in_addr address;
};

struct daemons {
	struct daemon *daemon;	/* by number */
	size_t count;		/* size of `daemon` */
	size_t owing;		/* those that have joined, and not answered RANK_SYNC */
};

/* WIRE_NODE (root.h). */
void daemons_join(struct daemons *d, const struct wire_header *h, const uint8_t *data);
/* What a message of it, or about it, says; a state never becomes an earlier one … */
void daemons_set(struct daemons *d, uint32_t number, enum daemon_state state);
/* … unless those that have answered are asked once more. */
void daemons_ask(struct daemons *d);
/* The nodes of those that are or were there, as silent.h takes them; malloc()ed, NULL: none. */
char *daemons_list(const struct daemons *d);
void daemons_free(struct daemons *d);

struct daemon_loss {
	const char *name;	/* of the node, in the message */
	bool silent;		/* the node does not answer; else the daemon has ended */
	char text[400];		/* for people */
};

/* What WIRE_GONE says (root.h); false: it is malformed. */
bool daemons_read_loss(struct daemon_loss *loss, const struct wire_header *h, const uint8_t *data);

#endif /* LAUNCH_DAEMONS_H */
