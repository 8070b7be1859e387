/* SPDX-License-Identifier: GPL-2.0 */
/* The launcher (mpirun) as a child of cr_mpirun, which stands for it. */
#ifndef LAUNCH_LAUNCHER_H
#define LAUNCH_LAUNCHER_H

/*
 * Before any thread is started: from now on signals wait for launcher_run(), but for
 * `own` (0: none) and those that end a program at once.
 */
void launcher_hold_signals(int own);

/*
 * Starts argv[0], found in PATH, with standard input, output and error of this process; passes
 * on to it the signals that are sent to this process alone, stops and continues with it,
 * and waits until it ends.  As from waitpid(2), or -errno with a message (report.h).
 */
int launcher_run(char *const *argv);

#endif /* LAUNCH_LAUNCHER_H */
