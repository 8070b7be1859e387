/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cr_mpirun's main loop: the launcher and the keepers of the ranks (rank_message.h), signals,
 * standard input and output.
 *
 * The launcher is only that: if it, or one of its daemons, is killed once all ranks have been
 * started, the ranks go on.  Its other daemons then try to end theirs, as they do when the
 * launcher wants the job to end, and the signals come before it is known why: so what
 * the launcher wants for a rank is done a moment later, unless it has turned out to be
 * dead.  It is done at once if the job is known to end, by a signal to this process or
 * because a rank has failed.
 *
 * A proxy that is killed is taken for such a part of the launcher if the job recovers
 * from failures; else it ends its rank, and so the job: some end programs that way.
 */
#ifndef LAUNCH_WATCH_H
#define LAUNCH_WATCH_H

#include "launch/recovery.h"

/*
 * Runs the launcher `argv` until the job has ended.  `job` is the socket of
 * root_settings.launch; -1: there is no coordinator, and the launcher does everything.
 * launcher_hold_signals() has been called.  recovery->due afterwards: the ranks have been lost, and
 * are to be restarted.  Else returns the launcher's status as from waitpid(2); or, if it has
 * died before the job, or says 0, that of the first rank that did not end with 0, else 0; that of
 * EXIT_FAILURE if it says 0 before all ranks were started; or -errno with a message (report.h).
 */
int watch_job(char *const *argv, int job, struct recovery *recovery);

#endif /* LAUNCH_WATCH_H */
