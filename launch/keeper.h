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
 * other socket by; NULL: this node takes no part in checkpoints.  `job` is a stream socket
 * to cr_mpirun (rank_message.h), taken over: output, input and ends of ranks go that way, and
 * when it ends the job is over; -1: there is none, proxies carry the output, the ranks have
 * no input, and the job is over when all have ended.  Then no process is left.
 */
void keeper_run(int listener, int job, const char *daemon);

#endif /* LAUNCH_KEEPER_H */
