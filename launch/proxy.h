/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the launcher starts in the place of a rank: it has the daemon of the node start the
 * rank, passes signals on and ends as the rank has ended.  If the launcher is to mark the rank's
 * output or put it in files, it carries that output to the launcher.
 */
#ifndef LAUNCH_PROXY_H
#define LAUNCH_PROXY_H

/*
 * Has the daemon at the other end of `daemon` start `argv`, and stands for it until it ends.
 * Returns how it ended, as from waitpid(2), or -errno with a message (report.h).
 */
int proxy_run(int daemon, char *const *argv);

/* Ends this process in the same way, without another core file. */
void proxy_end_like(int status) __attribute__((noreturn));

#endif /* LAUNCH_PROXY_H */
