/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hosts on which mpirun may start ranks: those of its options or of the scheduler, less the
 * ones that were lost, and less those that wait to take their place.
 */
#ifndef LAUNCH_HOSTS_H
#define LAUNCH_HOSTS_H

#include "launch/command.h"

/*
 * Takes out of c->proxied the hosts in `lost` (names separated by commas, or NULL), and as many of
 * the last ones that `spares` are left of it for every lost one.  A file of hosts is replaced
 * by a copy, without a name, that stays open; one by which cr_restart has placed the ranks has no
 * spare ones.  If no option names hosts, those of the scheduler's allocation are added.  0, or -errno
 * with a message (report.h).
 */
int hosts_limit(struct command *c, const char *lost, unsigned int spares);

/* Is this host, as a user or a daemon has named it, in the list? */
bool hosts_has(const char *list, const char *name);

#endif /* LAUNCH_HOSTS_H */
