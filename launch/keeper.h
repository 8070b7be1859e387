/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon's part in starting ranks: it is their parent, whatever becomes of the launcher,
 * and keeps the other ends of their standard input, output and error.  For each there is
 * a proxy, the process that the launcher takes for the rank.
 */
#ifndef LAUNCH_KEEPER_H
#define LAUNCH_KEEPER_H

/*
 * Serves the proxies that connect to `listener`.  `daemon` is what ranks find the daemon's
 * other socket by; NULL: this node takes no part in checkpoints.  Returns when `ended`
 * (a descriptor) is readable, as the job is over then, or, if it is -1, when all have
 * ended; no process that it has started is left.
 */
void keeper_run(int listener, int ended, const char *daemon);

#endif /* LAUNCH_KEEPER_H */
